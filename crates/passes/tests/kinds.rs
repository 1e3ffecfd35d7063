//! The waiting room's tokens: each grants one thing to one bearer for its lifetime, and none is
//! accepted as another kind.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

use std::time::Duration;

use proptest::prelude::*;
use urr_kernel::{EventId, OrderKey, Role, Timestamp, UserId, VisitorId};
use urr_passes::{
    Key, Refusal, Secret, access, challenge, entry, hop, queue_ticket, state_token, visitor, vwr_pass,
    vwr_ticket,
};
use uuid::Uuid;

fn secret(text: &str) -> Secret {
    Secret::new(format!("{text}: correct horse battery staple")).unwrap()
}

fn now() -> Timestamp {
    Timestamp::from_micros(1_790_000_000_500_000)
}

fn event() -> EventId {
    EventId::from_uuid(Uuid::from_u128(1))
}

fn pass() -> vwr_pass::Pass {
    let order = OrderKey::counted(now(), 7);
    vwr_pass::Pass { event: event(), visitor: VisitorId::from_uuid(Uuid::from_u128(3)), order, position: 7 }
}

fn first_ticket() -> vwr_ticket::Ticket {
    let vwr_pass::Pass { event, visitor, order, position } = pass();
    vwr_ticket::Ticket { event, visitor, position, order, epoch: 2, issued: now() }
}

fn second_ticket() -> queue_ticket::Ticket {
    let user = UserId::from_uuid(Uuid::from_u128(4));
    queue_ticket::Ticket { event: event(), user, order: OrderKey::at(now()), epoch: 2, issued: now() }
}

fn entry() -> entry::Entry {
    entry::Entry {
        event: event(),
        user: UserId::from_uuid(Uuid::from_u128(4)),
        slot: Uuid::from_u128(5),
        expires: Timestamp::from_micros(1_790_000_300_000_000),
    }
}

fn access() -> access::Access {
    let user = UserId::from_uuid(Uuid::from_u128(4));
    access::Access { user, role: Role::User, email: None, session: Uuid::from_u128(6) }
}

fn challenge() -> challenge::Challenge {
    let user = UserId::from_uuid(Uuid::from_u128(4));
    challenge::Challenge { user, method: "password".to_owned(), state: "as it was".to_owned() }
}

/// One kind of token: how to sign a valid one with a key, and how to verify one.
struct Kind {
    name: &'static str,
    key: fn(&Secret) -> Key,
    make: fn(Key) -> String,
    read: fn(Vec<Key>, &str, Timestamp) -> Result<(), Refusal>,
    lifetime: Option<Duration>,
}

const KINDS: [Kind; 10] = [
    Kind {
        name: "access",
        key: access::key,
        make: |key| access::Signer::new(key, access::LIFETIME).sign(&access(), Uuid::from_u128(9), now()),
        read: |keys, text, at| access::Verifier::new(keys).verify(text, at).map(drop),
        lifetime: Some(access::LIFETIME),
    },
    Kind {
        name: "state token",
        key: |secret| state_token::key("trip", secret),
        make: |key| {
            let expires = now().after(Duration::from_mins(10));
            state_token::StateTokens::new("trip", [key]).sign(&7, Uuid::from_u128(9), (now(), expires))
        },
        read: |keys, text, at| state_token::StateTokens::new("trip", keys).verify::<u8>(text, at).map(drop),
        lifetime: Some(Duration::from_mins(10)),
    },
    Kind {
        name: "state token of another kind",
        key: |secret| state_token::key("sign-up", secret),
        make: |key| {
            let expires = now().after(Duration::from_mins(10));
            state_token::StateTokens::new("sign-up", [key]).sign(&7, Uuid::from_u128(9), (now(), expires))
        },
        read: |keys, text, at| {
            state_token::StateTokens::new("sign-up", keys).verify::<u8>(text, at).map(drop)
        },
        lifetime: Some(Duration::from_mins(10)),
    },
    Kind {
        name: "challenge",
        key: challenge::key,
        make: |key| challenge::Challenges::new([key]).sign(&challenge(), Uuid::from_u128(9), now()).0,
        // Signed and verified by the same type, which needs at least one key.
        read: |keys, text, at| match &keys[..] {
            [] => Err(Refusal::Invalid),
            _ => challenge::Challenges::new(keys).verify(text, at).map(drop),
        },
        lifetime: Some(challenge::LIFETIME),
    },
    Kind {
        name: "hop",
        key: hop::key,
        make: |key| hop::Signer::new(key).sign([192, 0, 2, 1].into(), now()),
        read: |keys, text, at| hop::Verifier::new(keys).verify(text, at).map(drop),
        // Also valid shortly before it was issued; its own tests cover that.
        lifetime: None,
    },
    Kind {
        name: "visitor",
        key: visitor::key,
        make: |key| visitor::Marks::new([key]).sign(pass().visitor),
        read: |keys, text, _| visitor::Marks::new(keys).verify(text).map(drop),
        lifetime: None,
    },
    Kind {
        name: "vwr_ticket",
        key: vwr_ticket::key,
        make: |key| vwr_ticket::Tickets::new([key]).sign(&first_ticket()),
        read: |keys, text, at| vwr_ticket::Tickets::new(keys).verify(text, at).map(drop),
        lifetime: Some(vwr_ticket::LIFETIME),
    },
    Kind {
        name: "vwr_pass",
        key: vwr_pass::key,
        make: |key| vwr_pass::Passes::new([key]).sign(&pass(), Uuid::from_u128(9), now()),
        read: |keys, text, at| vwr_pass::Passes::new(keys).verify(text, at).map(drop),
        lifetime: Some(vwr_pass::LIFETIME),
    },
    Kind {
        name: "queue_ticket",
        key: queue_ticket::key,
        make: |key| queue_ticket::Tickets::new([key]).sign(&second_ticket()),
        read: |keys, text, at| queue_ticket::Tickets::new(keys).verify(text, at).map(drop),
        lifetime: Some(queue_ticket::LIFETIME),
    },
    Kind {
        name: "entry",
        key: entry::key,
        make: |key| entry::Entries::new([key]).sign(&entry(), Uuid::from_u128(9), now()),
        read: |keys, text, at| entry::Entries::new(keys).verify(text, at).map(drop),
        lifetime: Some(Duration::from_mins(5)),
    },
];

impl Kind {
    fn good(&self) -> String {
        (self.make)((self.key)(&secret("one")))
    }

    fn reads(&self, text: &str, at: Timestamp) -> Result<(), Refusal> {
        (self.read)(vec![(self.key)(&secret("one"))], text, at)
    }
}

#[test]
fn token_round_trips() {
    let one = secret("one");
    let tickets = vwr_ticket::Tickets::new([vwr_ticket::key(&one)]);
    assert_eq!(tickets.verify(&tickets.sign(&first_ticket()), now()), Ok(first_ticket()));
    let tickets = queue_ticket::Tickets::new([queue_ticket::key(&one)]);
    assert_eq!(tickets.verify(&tickets.sign(&second_ticket()), now()), Ok(second_ticket()));
    let passes = vwr_pass::Passes::new([vwr_pass::key(&one)]);
    let verified = passes.verify(&passes.sign(&pass(), Uuid::from_u128(9), now()), now()).unwrap();
    assert_eq!(verified.pass, pass());
    let entries = entry::Entries::new([entry::key(&one)]);
    assert_eq!(entries.verify(&entries.sign(&entry(), Uuid::from_u128(9), now()), now()), Ok(entry()));
    let marks = visitor::Marks::new([visitor::key(&one)]);
    assert_eq!(marks.verify(&marks.sign(pass().visitor)), Ok(pass().visitor));
}

#[test]
fn no_kind_is_accepted_as_another_even_with_one_key() {
    for given in &KINDS {
        for wanted in &KINDS {
            let verdict = wanted.reads(&given.good(), now());
            let expected = if given.name == wanted.name { Ok(()) } else { Err(Refusal::Invalid) };
            assert_eq!(verdict, expected, "{} shown as {}", given.name, wanted.name);
            // With one key for everything the separation by key is lost, but not the separation by
            // kind.
            let same = secret("one").key("everything");
            let verdict = (wanted.read)(vec![same.clone()], &(given.make)(same), now());
            assert_eq!(verdict, expected, "{} shown as {} under one key", given.name, wanted.name);
        }
    }
}

#[test]
fn tokens_expire_and_only_positions_are_valid_early() {
    for kind in &KINDS {
        let Some(lifetime) = kind.lifetime else { continue };
        let token = kind.good();
        let end = now().after(lifetime);
        assert_eq!(kind.reads(&token, end.before(Duration::from_secs(1))), Ok(()), "{}", kind.name);
        assert_eq!(kind.reads(&token, end), Err(Refusal::Expired), "{}", kind.name);
        // A position is not lost because a clock was set back.
        let is_place = ["vwr_ticket", "queue_ticket"].contains(&kind.name);
        for early in [Duration::from_secs(7), Duration::from_hours(48)] {
            let expected = if is_place { Ok(()) } else { Err(Refusal::Invalid) };
            assert_eq!(kind.reads(&token, now().before(early)), expected, "{}", kind.name);
        }
    }
}

#[test]
fn entry_token_lasts_at_most_ten_minutes_and_its_slot() {
    let entries = entry::Entries::new([entry::key(&secret("one"))]);
    let long = entry::Entry { expires: now().after(Duration::from_hours(9)), ..entry() };
    let read = entries.verify(&entries.sign(&long, Uuid::from_u128(9), now()), now()).unwrap();
    assert!(read.expires <= now().after(entry::LIFETIME));
}

#[test]
fn old_key_verifies_while_it_is_listed() {
    for kind in &KINDS {
        let (old, new) = ((kind.key)(&secret("one")), (kind.key)(&secret("two")));
        let token = kind.good();
        assert_eq!((kind.read)(vec![new.clone(), old], &token, now()), Ok(()), "{}", kind.name);
        assert_eq!((kind.read)(vec![new], &token, now()), Err(Refusal::Invalid), "{}", kind.name);
        assert_eq!((kind.read)(vec![], &token, now()), Err(Refusal::Invalid), "{}", kind.name);
    }
}

#[test]
fn tokens_fit_into_cookies_and_urls() {
    let length = |name: &str| KINDS.iter().find(|kind| kind.name == name).unwrap().good().len();
    assert!(length("vwr_ticket") <= 120 && length("queue_ticket") <= 120 && length("visitor") <= 60);
    assert!(length("entry") <= 500 && length("vwr_pass") <= 500);
}

proptest! {
    #[test]
    fn any_changed_byte_is_rejected(
        kind in 0..KINDS.len(), position in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let kind = &KINDS[kind];
        let mut bytes = kind.good().into_bytes();
        let position = position.index(bytes.len());
        prop_assume!(bytes[position] != byte);
        bytes[position] = byte;
        if let Ok(changed) = String::from_utf8(bytes) {
            prop_assert_eq!(kind.reads(&changed, now()), Err(Refusal::Invalid));
        }
    }

    #[test]
    fn truncated_and_extended_tokens_are_rejected(
        kind in 0..KINDS.len(), length in any::<prop::sample::Index>(), more in "[A-Za-z0-9_=-]{1,8}",
    ) {
        let kind = &KINDS[kind];
        let token = kind.good();
        prop_assert!(kind.reads(&token[..length.index(token.len())], now()).is_err());
        prop_assert!(kind.reads(&(token + &more), now()).is_err());
    }

    #[test]
    fn arbitrary_text_is_rejected_without_panicking(kind in 0..KINDS.len(), text in "\\PC{0,200}|[A-Za-z0-9_-]{0,120}") {
        prop_assert_eq!(KINDS[kind].reads(&text, now()), Err(Refusal::Invalid));
    }
}
