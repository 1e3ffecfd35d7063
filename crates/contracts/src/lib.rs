//! The interfaces between domains: one module per domain with its trait, requests, replies, errors
//! and messages.
//!
//! # Glossary
//!
//! One word has one meaning, in code, SQL, URLs and pages.
//!
//! * **Event**: one performance on sale.
//! * **Layout**: the seat plan of a hall. The seats of an event are generated from it once and
//!   never change.
//! * **Seat**: one seat of a hall, as sold for one event.
//! * **Ticket type**: a counted kind of admission to a standing event.
//! * **Hold**: the first five minutes of a reservation, in which its seats wait for payment.
//! * **Reservation**: one buyer's claim on one or more seats of an event.
//! * **Fence**: a number per seat that grows with every claim. A release or a sale must name the
//!   current fence; a stale one has no effect.
//! * **Account**: a registered person, identified by an e-mail address. Its owner is a *user*.
//! * **Session**: one sign-in on one device, with its chain of refresh tokens. Its access tokens
//!   are rejected once it is revoked.
//! * **Room**: the waiting room of one event. Waiting users have a *place* in line; admitted users
//!   have a *slot*.
//! * **Queue ticket**: a signed token of a place, which can restore it. **Entry token**: a signed
//!   token of a slot, which is required to buy.
//! * **Tier 1** counts browsers before sign-in; **Tier 2** queues signed-in users. **Pass**: a
//!   signed token that proves admission by Tier 1.
//! * **Message**: one fact on the bus. (`eventId` in a message is the concert; the message's own id
//!   is `messageId`.)

pub mod auth;
pub mod catalog;
pub mod messages;
pub mod queue;
pub mod tickets;
pub mod vwr;
