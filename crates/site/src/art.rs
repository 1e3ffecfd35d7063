//! A picture for an event that has none: a crowd in colours of its own, the same every time.

use urr_kernel::EventId;

/// How many people are in the picture.
const CROWD: usize = 9;

/// What the template draws.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Art {
    /// The colour of the light, in degrees.
    pub(crate) hue: u32,
    pub(crate) crowd: Vec<Dot>,
}

/// One of the crowd, in a picture of 320 by 180.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dot {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) r: u32,
    /// How bright, in percent.
    pub(crate) light: u32,
}

/// The picture of an event.
pub(crate) fn of(event: EventId) -> Art {
    // Ids made together begin alike, so every bit is stirred into every other one.
    let mut seed = event.as_uuid().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |seed, byte| {
        (seed ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut next = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((seed >> 33) % below).expect("a small number")
    };
    let hue = next(360);
    let mut crowd: Vec<Dot> = (0..CROWD)
        .map(|_| Dot { x: next(320), y: 96 + next(70), r: 18 + next(34), light: 30 + next(34) })
        .collect();
    // Those in front are lower.
    crowd.sort_by_key(|dot| dot.y);
    Art { hue, crowd }
}

#[cfg(test)]
mod tests {
    use urr_kernel::Ids;

    use super::*;

    #[test]
    fn every_event_has_its_own_and_keeps_it() {
        let (_, ids): (_, Ids) = urr_testkit::fixed();
        let (one, other): (EventId, EventId) = (ids.next(), ids.next());
        assert_eq!(of(one), of(one));
        assert_ne!(of(one), of(other));
        assert!(of(one).crowd.iter().all(|dot| dot.x < 320 && dot.y < 180));
    }
}
