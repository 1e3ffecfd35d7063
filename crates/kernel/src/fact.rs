//! Facts that domains publish on the bus.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{MessageId, Timestamp};

/// What a domain publishes: an enum with `#[serde(tag = "type")]`.
pub trait Fact: Serialize + DeserializeOwned {
    /// The topic.
    const TOPIC: &'static str;
    /// The values of `type` that this version knows. Consumers skip others.
    const KINDS: &'static [&'static str];

    /// The value of `type`; one of [`Self::KINDS`].
    fn kind(&self) -> &'static str;

    /// The ordering key: facts with the same key are delivered in order.
    fn key(&self) -> String;
}

/// Implements [`Fact`] for an enum: its topic, the field that is the ordering key, and the `type` of
/// each variant, as in its `#[serde(rename)]`.
///
/// ```
/// # use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize)]
/// #[serde(tag = "type", rename_all_fields = "camelCase")]
/// enum SeatFact {
///     #[serde(rename = "SEAT_SOLD")]
///     Sold { seat_id: u32 },
/// }
/// const SEAT_EVENTS: &str = "seat-events";
/// urr_kernel::fact! { SeatFact on SEAT_EVENTS by seat_id { Sold = "SEAT_SOLD" } }
/// # use urr_kernel::Fact as _;
/// # assert_eq!(SeatFact::Sold { seat_id: 7 }.key(), "7");
/// ```
#[macro_export]
macro_rules! fact {
    ($Fact:ident on $topic:ident by $key:ident { $($Variant:ident = $kind:literal),+ $(,)? }) => {
        impl $crate::Fact for $Fact {
            const TOPIC: &'static str = $topic;
            const KINDS: &'static [&'static str] = &[$($kind),+];

            fn kind(&self) -> &'static str {
                match self {
                    $(Self::$Variant { .. } => $kind,)+
                }
            }

            fn key(&self) -> ::std::string::String {
                match self {
                    $(Self::$Variant { $key, .. })|+ => $key.to_string(),
                }
            }
        }
    };
}

/// A fact with the id and time of its message. Serialised as one flat JSON object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope<E> {
    /// Unique per message; consumers use it to detect redeliveries.
    pub message_id: MessageId,
    /// The business transaction this belongs to, if one spans several messages.
    pub saga_id: Option<String>,
    /// When the fact became true.
    pub timestamp: Timestamp,
    /// The fact. Its `type` field says which.
    #[serde(flatten)]
    pub fact: E,
}
