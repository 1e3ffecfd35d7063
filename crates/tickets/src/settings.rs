//! Settings of the sale.

use urr_settings::{Secs, settings};

settings! {
    /// `[sale]`.
    pub struct Settings in "sale"
        "Rules of selling. How many seats a buyer may hold is set per event, in the catalog."
    {
        /// Seconds an unpaid reservation keeps its seats.
        pub hold("hold_secs"): Secs<5, 3_600> = "300",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_hold_time_matches_the_kernel_limit() {
        assert_eq!(Settings::default().hold, urr_kernel::limits::HOLD);
    }
}
