//! Background work: admissions, freeing slots of completed purchases, samples for the live view,
//! and clean-up.

pub(crate) mod admission;
pub(crate) mod purchases;
pub(crate) mod sampling;
pub(crate) mod tidy;
