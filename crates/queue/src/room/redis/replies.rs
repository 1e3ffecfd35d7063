//! Parses script replies. A reply that does not match is an error that names the part.

use std::str::FromStr;

use urr_kernel::{OrderKey, Timestamp, UserId};
use urr_kv::{Error, Reply};

use super::super::{AdmissionLock, Answer};
use crate::{
    admission_rate::AdmissionRate,
    journal::{Entry, Source, Step, Why},
    room_model::{Slot, Totals, UserState},
    token_position::{Flaw, Flaws, TokenPosition},
};

const ABSENT: i64 = 0;
const WAITING: i64 = 1;
const INSIDE: i64 = 2;
const FULL: i64 = 3;
const UNKNOWN: i64 = 4;
const UNSURE: i64 = 5;

const HOLDS: i64 = 0;
const VOID: i64 = 1;
const USED: i64 = 2;

pub(super) fn is_unknown(reply: &Reply) -> bool {
    matches!(reply.list(), Ok([Reply::Int(UNKNOWN)]))
}

pub(super) fn is_unsure(reply: &Reply) -> bool {
    matches!(reply.list(), Ok([Reply::Int(UNSURE)]))
}

fn strange(what: &str) -> Error {
    Error::Reply(format!("unexpected {what}"))
}

fn text(reply: &Reply) -> Result<&str, Error> {
    std::str::from_utf8(reply.bytes()?).map_err(|_| strange("string"))
}

pub(super) fn parse<T: FromStr>(reply: &Reply) -> Result<T, Error> {
    text(reply)?.parse().map_err(|_| strange("word"))
}

fn number<T: TryFrom<i64>>(reply: &Reply) -> Result<T, Error> {
    T::try_from(reply.int()?).map_err(|_| strange("number"))
}

fn order_key(number: u64) -> Result<OrderKey, Error> {
    OrderKey::new(number).ok_or_else(|| strange("order key"))
}

/// Parses the reply of `check.lua`: the answer, and what is wrong with each promise.
pub(super) fn arrival<'a>(reply: &'a Reply, promises: &[TokenPosition]) -> Result<(&'a Reply, Flaws), Error> {
    let [answer, found @ ..] = reply.list()? else { return Err(strange("check reply")) };
    if found.len() != promises.len() {
        return Err(strange("check reply"));
    }
    let mut flaws = Flaws::default();
    for (promise, found) in promises.iter().zip(found) {
        match found.int()? {
            HOLDS => {}
            VOID => flaws.note(promise, Flaw::Void),
            USED => flaws.note(promise, Flaw::Used),
            _ => return Err(strange("flaw")),
        }
    }
    Ok((answer, flaws))
}

/// Parses `answer` of `room.lua`. Also returns whether the database has the slot.
pub(super) fn answer(reply: &Reply) -> Result<(Answer, bool), Error> {
    let [
        state,
        order,
        ahead,
        slot,
        since,
        ends,
        known, //
        waiting,
        active,
        threshold,
        paused,
        epoch,
        first,
        minute,
        current,
        before,
        arrived,
        admitted,
        now,
        _generation,
        _seq,
    ] = reply.list()?
    else {
        return Err(strange("answer"));
    };
    let instant = |reply: &Reply| reply.int().map(Timestamp::from_micros);
    let now = instant(now)?;
    let state = match state.int()? {
        ABSENT => UserState::Absent,
        WAITING => UserState::Waiting { order: order_key(number(order)?)?, ahead: number(ahead)? },
        INSIDE => {
            let (id, order) = (parse(slot)?, order_key(number(order)?)?);
            UserState::Active { slot: Slot { id, order, since: instant(since)? }, ends: instant(ends)? }
        }
        FULL => UserState::Full,
        _ => return Err(strange("standing")),
    };
    let admission_rate =
        AdmissionRate::restored(instant(first)?, minute.int()?, number(current)?, number(before)?);
    let totals = Totals {
        waiting: number(waiting)?,
        active: number(active)?,
        threshold: number(threshold)?,
        paused: paused.int()? == 1,
        epoch: number(epoch)?,
        per_second: admission_rate.per_second(now),
        arrived: number(arrived)?,
        admitted: number(admitted)?,
    };
    Ok((Answer { state, totals, flaws: Flaws::default(), now }, known.int()? == 1))
}

/// The room's generation and its last step number, or `None` if Redis does not have the room.
pub(super) fn numbered(reply: &Reply) -> Result<Option<(u64, u64)>, Error> {
    match reply.list()? {
        [Reply::Nil, _] => Ok(None),
        [generation, seq] => Ok(Some((parse(generation)?, parse(seq)?))),
        _ => Err(strange("step number")),
    }
}

/// Whether this worker holds the admission lock, and in which epoch.
pub(super) fn turn(reply: &Reply) -> Result<AdmissionLock, Error> {
    match reply.list()? {
        [Reply::Int(1), epoch] => Ok(AdmissionLock::Ours { epoch: Some(text(epoch)?.to_owned()) }),
        [Reply::Int(0)] => Ok(AdmissionLock::Others),
        _ => Err(strange("lock")),
    }
}

/// The admitted users with their slots. Empty when the worker's epoch is over.
pub(super) fn admitted(reply: &Reply) -> Result<Vec<(String, String)>, Error> {
    let people = reply.list()?;
    if matches!(people, [Reply::Int(_)]) {
        return Ok(Vec::new());
    }
    let person = |person: &Reply| match person.list()? {
        [user, slot] => Ok((text(user)?.to_owned(), text(slot)?.to_owned())),
        _ => Err(strange("admission")),
    };
    people.iter().map(person).collect()
}

/// Parses entries of the journal stream.
pub(super) fn steps(reply: &Reply) -> Result<Vec<Entry>, Error> {
    reply.list()?.iter().map(entry).collect()
}

fn entry(reply: &Reply) -> Result<Entry, Error> {
    let [id, fields] = reply.list()? else { return Err(strange("step")) };
    let (generation, seq) = text(id)?.split_once('-').ok_or_else(|| strange("step number"))?;
    let fields = fields.list()?;
    let find = |name: &str| {
        let named =
            fields.chunks_exact(2).find(|pair| pair[0].bytes().is_ok_and(|found| found == name.as_bytes()));
        named.map(|pair| &pair[1]).ok_or_else(|| strange("step"))
    };
    let user = || parse::<UserId>(find("user")?);
    let order = || order_key(parse(find("order")?)?);
    // Empty for a user who waited; missing in steps written by an older version.
    let source = || find("source").ok().map(text).transpose().map(Option::unwrap_or_default).and_then(source);
    let step = match text(find("kind")?)? {
        "joined" => Step::Joined { user: user()?, order: order()?, source: source()? },
        "admitted" => {
            let slot = parse(find("slot")?)?;
            Step::Admitted { user: user()?, order: order()?, slot, source: source()? }
        }
        "returned" => Step::Returned { user: user()?, order: order()? },
        "gone" => Step::Gone { user: user()?, why: why(text(find("why")?)?)? },
        "threshold" => Step::Threshold { threshold: parse(find("number")?)? },
        "paused" => Step::Paused,
        "resumed" => Step::Resumed,
        "cleared" => Step::Cleared { epoch: parse(find("number")?)? },
        _ => return Err(strange("step kind")),
    };
    let whole = |text: &str| text.parse().map_err(|_| strange("step number"));
    let at = Timestamp::from_micros(parse(find("at")?)?);
    Ok(Entry { generation: whole(generation)?, seq: whole(seq)?, at, step })
}

fn source(word: &str) -> Result<Option<Source>, Error> {
    if word.is_empty() {
        return Ok(None);
    }
    let all = [Source::New, Source::Ticket, Source::Pass];
    let found = all.into_iter().find(|source| source.as_str() == word);
    found.map(Some).ok_or_else(|| strange("source of a position"))
}

fn why(word: &str) -> Result<Why, Error> {
    let all = [Why::Left, Why::Idle, Why::Expired, Why::Bought];
    all.into_iter().find(|why| why.as_str() == word).ok_or_else(|| strange("reason"))
}
