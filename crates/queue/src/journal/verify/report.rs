//! The verifier's report.

use std::fmt;

use urr_kernel::{Timestamp, UserId};

/// Fewer idle users than this are not reported as a mass timeout.
const MANY: usize = 10;

/// A step that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Generation of the room.
    pub generation: u64,
    /// Number of the step.
    pub seq: u64,
    /// Time of the step.
    pub at: Timestamp,
    /// The rule it breaks.
    pub fault: Fault,
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A user was admitted before one who joined earlier.
    Overtook {
        /// The admitted user.
        user: UserId,
        /// The user who should have been admitted.
        first: UserId,
    },
    /// A user was admitted although all slots were taken.
    OverThreshold {
        /// Users with a slot afterwards.
        active: usize,
        /// Slots allowed at that moment.
        threshold: u32,
    },
    /// A user was admitted while the room was paused.
    WhilePaused,
    /// A user got a second position, or a position beside a slot.
    TwoPlaces {
        /// The user.
        user: UserId,
    },
    /// A user got a position that they had used or given up, or an earlier one.
    Reused {
        /// The user.
        user: UserId,
    },
    /// A newcomer got a position ahead of one given before.
    TooEarly {
        /// The user.
        user: UserId,
    },
    /// A ticket restored a position that its owner was never given.
    NeverGiven {
        /// The user.
        user: UserId,
    },
    /// A user was admitted, returned or removed who was not in that state.
    NotThere {
        /// The user.
        user: UserId,
    },
    /// Steps are missing before this one.
    Gap {
        /// The missing number.
        expected: u64,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overtook { user, first } => {
                write!(f, "{user} was admitted before {first}, who joined earlier")
            }
            Self::OverThreshold { active, threshold } => {
                write!(f, "admission above the threshold: {active} active, {threshold} allowed")
            }
            Self::WhilePaused => write!(f, "admission while the room was paused"),
            Self::TwoPlaces { user } => write!(f, "{user} has two positions"),
            Self::Reused { user } => write!(f, "{user} used one position twice"),
            Self::TooEarly { user } => write!(f, "{user} is new and got a position ahead of earlier users"),
            Self::NeverGiven { user } => write!(f, "{user} returned to a position that no step gave them"),
            Self::NotThere { user } => write!(f, "{user} neither waited nor had a slot"),
            Self::Gap { expected } => write!(f, "steps from number {expected} on are missing"),
        }
    }
}

/// Many users who timed out together: perhaps their requests could not reach the service. Not
/// unfair, but worth reporting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// When the first of them timed out.
    pub at: Timestamp,
    /// Users waiting at that time.
    pub waiting: usize,
    /// How many of them timed out within a second.
    pub gone: usize,
}

impl Silence {
    pub(super) fn is_remarkable(&self) -> bool {
        self.gone >= MANY && self.gone * 2 >= self.waiting
    }
}

/// The result of verifying a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Steps read.
    pub steps: u64,
    /// Positions given.
    pub joined: u64,
    /// Slots given.
    pub admitted: u64,
    /// Users who left, timed out, expired or bought.
    pub gone: u64,
    /// Operator decisions.
    pub operator: u64,
    /// Most users waiting at once.
    pub most_waiting: usize,
    /// Most users with a slot at once.
    pub most_active: usize,
    /// The first hundred findings.
    pub findings: Vec<Finding>,
    /// Number of all findings.
    pub faults: u64,
    /// Positions restored by tickets that no step gave: their owners joined just before a store
    /// lost its data.
    pub unproven: u64,
    /// How often the clock went back by two seconds or more. Harmless: the room's order does not
    /// depend on it.
    pub clock_back: u64,
    /// The largest mass timeout, if half of the line ever timed out at once.
    pub silence: Option<Silence>,
}

impl Report {
    /// Whether there are no findings.
    pub fn is_fair(&self) -> bool {
        self.faults == 0
    }
}
