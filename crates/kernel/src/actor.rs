//! The caller of a request and its role.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::UserId;

/// The role of a signed-in user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A buyer.
    User,
    /// An operator of the platform.
    Admin,
    /// An admin who signed in without the required second factor: has the rights of a user until
    /// then. Only tokens have this role; an account is either `user` or `admin`.
    UnprovenAdmin,
}

/// On whose behalf a request runs. Determined once, at the edge, from a verified token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Actor {
    /// Not signed in.
    Anonymous,
    /// A signed-in user.
    User {
        /// The account.
        id: UserId,
        /// The account's role.
        role: Role,
    },
    /// The platform itself: a job, a consumer, an operator's command.
    System,
}

impl Actor {
    /// The signed-in user's id, if any.
    pub fn user(&self) -> Option<UserId> {
        match self {
            Self::User { id, .. } => Some(*id),
            Self::Anonymous | Self::System => None,
        }
    }

    /// Whether the actor has operator rights.
    pub fn is_admin(&self) -> bool {
        matches!(self, Self::User { role: Role::Admin, .. } | Self::System)
    }
}
