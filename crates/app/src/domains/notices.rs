//! The role `notices`: reads notices of admissions from SQS.

use super::{Declaration, Part};

/// `roles = all` leaves it out: a message that it reads is gone for every other reader.
pub(crate) static ROLE: Declaration =
    Declaration { in_all: false, ..Declaration::new("notices", |_| Ok(Some(Part::default()))) };
