//! What is kept and told on AWS. A binary that was built without the feature `aws` does neither; a configuration that wants it to was refused
//! before anything here is asked.

#[cfg(feature = "aws")]
mod live;

#[cfg(not(feature = "aws"))]
#[path = "off.rs"]
mod live;

#[cfg(feature = "aws")]
mod notices;

pub(crate) use live::{check, counters, examine, migrate, notices, read_notices};
