//! Who is asking.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::UserId;

/// What a signed-in user may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Buys tickets.
    User,
    /// Runs the platform.
    Admin,
    /// Would run the platform, but signed in without the second factor that this needs: does what a user does until then. Only
    /// tokens say this; an account is a user's or an administrator's.
    UnprovenAdmin,
}

/// On whose behalf a request runs. Decided once, at the edge, from a verified token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Actor {
    /// Nobody signed in.
    Anonymous,
    /// A signed-in user.
    User {
        /// Whose account it is.
        id: UserId,
        /// What the account may do.
        role: Role,
    },
    /// The platform itself: a job, a consumer, an operator's command.
    System,
}

impl Actor {
    /// The signed-in user's id, if there is one.
    pub fn user(&self) -> Option<UserId> {
        match self {
            Self::User { id, .. } => Some(*id),
            Self::Anonymous | Self::System => None,
        }
    }

    /// Whether the actor may do what only operators may.
    pub fn is_admin(&self) -> bool {
        matches!(self, Self::User { role: Role::Admin, .. } | Self::System)
    }
}
