//! A generated picture for events without a poster; the same event always gets the same picture.

use urr_kernel::EventId;

/// Number of figures in the picture.
const CROWD: usize = 9;

/// The values that the template draws.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GeneratedPoster {
    /// Hue of the light, in degrees.
    pub(crate) hue: u32,
    pub(crate) crowd: Vec<Dot>,
}

/// One figure, in a picture of 320 by 180.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dot {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) r: u32,
    /// Brightness, in percent.
    pub(crate) light: u32,
}

/// The picture of an event.
pub(crate) fn of(event: EventId) -> GeneratedPoster {
    // Ids created together share their first bytes, so mix all bytes into the seed.
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
    // Figures in the foreground are lower and are drawn last.
    crowd.sort_by_key(|dot| dot.y);
    GeneratedPoster { hue, crowd }
}

#[cfg(test)]
mod tests {
    use urr_kernel::Ids;

    use super::*;

    #[test]
    fn every_event_has_its_own_stable_picture() {
        let (_, ids): (_, Ids) = urr_testkit::fixed();
        let (one, other): (EventId, EventId) = (ids.next(), ids.next());
        assert_eq!(of(one), of(one));
        assert_ne!(of(one), of(other));
        assert!(of(one).crowd.iter().all(|dot| dot.x < 320 && dot.y < 180));
    }
}
