//! What the domains promise each other: one module per domain with its trait, requests, replies, errors and events.
//!
//! # Glossary
//!
//! One word per idea, in code, SQL, URLs and pages.
//!
//! * **Event**: one performance on sale.
//! * **Layout**: the plan of a hall. Seats of an event are made from it once and never change afterwards.
//! * **Seat**: one sellable place of one event.
//! * **Ticket type**: a counted kind of admission to a standing event.
//! * **Hold**: the first five minutes of a reservation, in which its seats wait for payment.
//! * **Reservation**: one buyer's claim on one to four seats.
//! * **Fence**: a number per seat that grows with every claim. Whoever releases or sells a seat names the fence they
//!   mean; a stale one changes nothing.
//! * **Account**: one person's place with us, named by an e-mail address. Its owner is a *user* to everybody else.
//! * **Session**: one sign-in on one device, with its family of refresh tokens. Revoking it makes its access tokens worthless.
//! * **Room**: where people wait for one event. Those in *line* have a *place*; those who are in have a *slot*.
//! * **Ticket** of a line: a signed note of a place, which brings it back. **Entry token**: a signed note of a slot, which opens the sale.
//! * **Tier 1** counts everybody before anybody is known; **Tier 2** knows who waits. **Pass**: a signed note that it was somebody's turn in Tier 1.
//! * **Message**: one fact on the bus. (`eventId` in a message is the concert; the message's own id is `messageId`.)

pub mod auth;
pub mod catalog;
pub mod messages;
pub mod queue;
pub mod tickets;
pub mod vwr;
