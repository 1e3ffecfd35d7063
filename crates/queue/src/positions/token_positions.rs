//! Verifies the caller's tokens and derives the positions they promise.
//!
//! A token that is foreign, for another event, expired or forged promises nothing, and the answer
//! names it with the reason. The caller is then treated as if it were absent, so that a bad cookie
//! blocks no user. A pass that another account has used is refused altogether: one wait in Tier 1
//! would else admit two users.

use urr_contracts::queue::{CheckIn, TokenRefusal};
use urr_db::{Tx, transaction};
use urr_kernel::{UserId, VisitorId};
use urr_passes::Refusal;

use super::store;
use crate::{
    Failure,
    service::Service,
    token_position::{Flaw, Flaws, TokenPosition},
};

/// Result of verifying the caller's tokens.
#[derive(Default)]
pub(super) struct Promised {
    /// Promises of genuine tokens. The room decides which hold; the first that does counts.
    pub(super) promises: Vec<TokenPosition>,
    pub(super) refused: Vec<TokenRefusal>,
    /// Whether another account has used the pass.
    pub(super) is_taken: bool,
}

/// The promises of the caller's tokens: first the ticket, which only its owner can use, then the
/// pass. The pass is claimed for the caller even if there is a ticket, because the ticket may turn
/// out to be void.
pub(super) async fn of(service: &Service, user: UserId, request: &CheckIn) -> Result<Promised, Failure> {
    let mut promised = Promised::default();
    match ticket(service, user, request) {
        Some(Ok(promise)) => promised.promises.push(promise),
        Some(Err(refusal)) => promised.refused.push(refusal),
        None => {}
    }
    match pass(service, request) {
        Some(Ok((visitor, promise))) => {
            if use_pass(service, user, request, visitor).await? {
                promised.promises.push(promise);
            } else {
                promised.refused.push(TokenRefusal::PassForeign);
                promised.is_taken = true;
            }
        }
        Some(Err(refusal)) => promised.refused.push(refusal),
        None => {}
    }
    Ok(promised)
}

fn ticket(service: &Service, user: UserId, request: &CheckIn) -> Option<Result<TokenPosition, TokenRefusal>> {
    let text = request.ticket.as_ref()?;
    Some(match service.tickets.verify(text.expose(), service.clock.now()) {
        Err(Refusal::Expired) => Err(TokenRefusal::TicketExpired),
        Err(Refusal::Invalid) => Err(TokenRefusal::TicketInvalid),
        Ok(ticket) if ticket.event != request.event || ticket.user != user => {
            Err(TokenRefusal::TicketForeign)
        }
        Ok(ticket) => {
            Ok(TokenPosition { order: ticket.order, epoch: Some(ticket.epoch), since: ticket.issued })
        }
    })
}

fn pass(service: &Service, request: &CheckIn) -> Option<Result<(VisitorId, TokenPosition), TokenRefusal>> {
    let text = request.pass.as_ref()?;
    Some(match service.passes.verify(text.expose(), service.clock.now()) {
        Err(Refusal::Expired) => Err(TokenRefusal::PassExpired),
        Err(Refusal::Invalid) => Err(TokenRefusal::PassInvalid),
        Ok(verified) if verified.pass.event != request.event => Err(TokenRefusal::PassForeign),
        Ok(verified) if request.line_since.is_some_and(|opened| !verified.pass.is_of_line(opened)) => {
            Err(TokenRefusal::PassExpired)
        }
        Ok(verified) => {
            let promise = TokenPosition { order: verified.pass.order, epoch: None, since: verified.since };
            Ok((verified.pass.visitor, promise))
        }
    })
}

/// Refusal codes for promises that the room rejected.
pub(super) fn broken(flaws: Flaws) -> impl Iterator<Item = TokenRefusal> {
    let ticket = flaws.ticket.map(|flaw| match flaw {
        Flaw::Void => TokenRefusal::TicketVoid,
        Flaw::Used => TokenRefusal::TicketUsed,
    });
    // Clearing a line voids tickets only.
    ticket.into_iter().chain(flaws.pass.map(|_| TokenRefusal::PassUsed))
}

/// Claims a pass for the first user who presents it. Returns `false` if that was another user.
async fn use_pass(
    service: &Service,
    user: UserId,
    request: &CheckIn,
    visitor: VisitorId,
) -> Result<bool, Failure> {
    let (event, now) = (request.event, service.clock.now());
    let user_of_pass = service
        .db
        .read("queue.pass_user", async |tx: &mut Tx<'_>| {
            Ok::<_, Failure>(store::user_of_pass(tx, event, visitor).await?)
        })
        .await?;
    let owner = match user_of_pass {
        Some(owner) => owner,
        None => transaction!(service.db, "queue.use_pass", async |tx: &mut Tx<'_>| {
            Ok::<_, Failure>(store::use_pass(tx, event, visitor, user, now).await?)
        })?,
    };
    Ok(owner == user)
}
