//! What a journal shows.

use std::fmt;

use urr_kernel::{Timestamp, UserId};

/// Fewer than this may all have gone home.
const MANY: usize = 10;

/// Something that should not have happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// In which life of the room.
    pub generation: u64,
    /// The step that did it.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// What.
    pub fault: Fault,
}

/// What can go wrong in a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Somebody was let in before somebody who came earlier.
    Overtook {
        /// Who was let in.
        user: UserId,
        /// Who should have been.
        first: UserId,
    },
    /// Somebody was let in although the room was full.
    OverThreshold {
        /// How many were in then.
        active: usize,
        /// How many might.
        threshold: u32,
    },
    /// Somebody was let in although the room was paused.
    WhilePaused,
    /// Somebody got a second place, or a place and a slot.
    TwoPlaces {
        /// Who.
        user: UserId,
    },
    /// A user got a place that they had used or given up already, or one before it.
    Reused {
        /// Who.
        user: UserId,
    },
    /// Somebody who is new got a place before one that was given already.
    TooEarly {
        /// Who.
        user: UserId,
    },
    /// Somebody got a place by a ticket, and no step ever gave it to them.
    NeverGiven {
        /// Who.
        user: UserId,
    },
    /// Somebody was let in, returned or gone who was not where the step says.
    NotThere {
        /// Who.
        user: UserId,
    },
    /// Steps are missing before this one.
    Gap {
        /// Which number should have come.
        expected: u64,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overtook { user, first } => write!(f, "{user} was let in before {first}, who came earlier"),
            Self::OverThreshold { active, threshold } => {
                write!(f, "somebody was let in: {active} are in, {threshold} may be")
            }
            Self::WhilePaused => write!(f, "somebody was let in while the room was paused"),
            Self::TwoPlaces { user } => write!(f, "{user} has two places"),
            Self::Reused { user } => write!(f, "{user} used one place twice"),
            Self::TooEarly { user } => write!(f, "{user} is new and got a place before others who had come"),
            Self::NeverGiven { user } => write!(f, "{user} came back to a place that no step gave them"),
            Self::NotThere { user } => write!(f, "{user} was neither waiting nor in"),
            Self::Gap { expected } => write!(f, "steps from number {expected} on are missing"),
        }
    }
}

/// People who were sent away together because nobody had heard of them: perhaps they could not be heard. No fault of the room's, but
/// somebody should know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// When the first of them went.
    pub at: Timestamp,
    /// How many waited then.
    pub waiting: usize,
    /// How many of them went within a second.
    pub gone: usize,
}

impl Silence {
    pub(super) fn is_remarkable(&self) -> bool {
        self.gone >= MANY && self.gone * 2 >= self.waiting
    }
}

/// What a journal shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Steps read.
    pub steps: u64,
    /// Places given.
    pub joined: u64,
    /// Slots given.
    pub admitted: u64,
    /// People who left, were idle too long, whose time was over, or who bought.
    pub gone: u64,
    /// What operators did.
    pub operator: u64,
    /// How many waited at most.
    pub most_waiting: usize,
    /// How many were in at most.
    pub most_active: usize,
    /// What should not have happened, the first hundred.
    pub findings: Vec<Finding>,
    /// And how many of those there are.
    pub faults: u64,
    /// Places that tickets brought back and no step tells of: whoever they were given to came just before a store lost its data.
    pub unproven: u64,
    /// How often the clock went back by two seconds or more. No fault of the room's, whose order does not go by it.
    pub clock_back: u64,
    /// When the most people fell silent at once, if half of the line ever did.
    pub silence: Option<Silence>,
}

impl Report {
    /// Whether nothing was found.
    pub fn is_fair(&self) -> bool {
        self.faults == 0
    }
}
