//! Throttles networks that send wrong passwords. In memory: each process counts attempts by itself,
//! before the password is compared. Failures are also counted in the database, for all processes
//! (`shared`).

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use urr_kernel::Clock;

use crate::sessions::rules::{FREE_TRIES_PER_NETWORK, wait_after};

/// Maximum number of networks. At about 60 bytes each, 20,000 are 1.2 MB.
const MAX_NETWORKS: usize = 20_000;

/// The count of failures decreases by one after this time.
pub(super) const FORGIVE_EVERY: Duration = Duration::from_secs(30);

pub(crate) struct Brake {
    clock: Clock,
    networks: Mutex<HashMap<IpAddr, Tries>>,
}

#[derive(Clone, Copy)]
struct Tries {
    count: u32,
    /// The time of `count`.
    at: Duration,
    locked_until: Duration,
}

impl Tries {
    fn forgiven(self, now: Duration) -> Self {
        let spans = now.saturating_sub(self.at).as_nanos() / FORGIVE_EVERY.as_nanos();
        let spans = u32::try_from(spans).unwrap_or(u32::MAX);
        let at = self.at.saturating_add(FORGIVE_EVERY.saturating_mul(spans));
        Self { count: self.count.saturating_sub(spans), at, ..self }
    }

    fn is_over(self, now: Duration) -> bool {
        self.forgiven(now).count == 0 && self.locked_until <= now
    }
}

impl Brake {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, networks: Mutex::default() }
    }

    /// Fails with the remaining wait while the network is throttled. Counts nothing.
    pub(crate) fn check(&self, network: IpAddr) -> Result<(), Duration> {
        let now = self.clock.ticks();
        let networks = self.networks.lock().unwrap_or_else(PoisonError::into_inner);
        match networks.get(&network) {
            Some(tries) if tries.locked_until > now => Err(tries.locked_until.saturating_sub(now)),
            _ => Ok(()),
        }
    }

    /// Counts an attempt in advance. Fails with the remaining wait if the network is throttled.
    pub(crate) fn charge(&self, network: IpAddr) -> Result<(), Duration> {
        let now = self.clock.ticks();
        let mut networks = self.networks.lock().unwrap_or_else(PoisonError::into_inner);
        if !networks.contains_key(&network) && networks.len() >= MAX_NETWORKS {
            make_room(&mut networks, now);
        }
        let tries = networks.entry(network).or_insert(Tries { count: 0, at: now, locked_until: now });
        if tries.locked_until > now {
            return Err(tries.locked_until.saturating_sub(now));
        }
        *tries = tries.forgiven(now);
        tries.count = tries.count.saturating_add(1);
        if let Some(wait) = wait_after(tries.count, FREE_TRIES_PER_NETWORK) {
            tries.locked_until = now.saturating_add(wait);
        }
        Ok(())
    }

    /// Reverts [`Self::charge`]: the attempt was not a wrong password.
    pub(crate) fn take_back(&self, network: IpAddr) {
        let now = self.clock.ticks();
        let mut networks = self.networks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tries) = networks.get_mut(&network) {
            tries.count = tries.count.saturating_sub(1);
            tries.locked_until = now;
        }
    }
}

/// Removes networks whose count has decayed to zero. If that is not enough, removes those with the
/// fewest attempts, all at once, so that the next insertions need no search.
fn make_room(networks: &mut HashMap<IpAddr, Tries>, now: Duration) {
    networks.retain(|_, tries| !tries.is_over(now));
    if networks.len() >= MAX_NETWORKS {
        let fewest = networks.values().map(|tries| tries.count).min().unwrap_or(0);
        networks.retain(|_, tries| tries.count > fewest);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use urr_testkit::fixed_clock;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));

    #[test]
    fn wrong_passwords_throttle_their_network_only() {
        let clock = fixed_clock();
        let brake = Brake::new(clock.clone());
        for _ in 0..FREE_TRIES_PER_NETWORK {
            assert_eq!(brake.charge(HERE), Ok(()));
        }
        for wait in [1, 2, 4, 8] {
            let wait = Duration::from_secs(wait);
            assert_eq!(brake.charge(HERE), Err(wait), "refused attempts do not extend the wait");
            assert_eq!(brake.charge(HERE), Err(wait));
            assert_eq!(brake.charge(THERE), Ok(()));
            clock.advance(wait);
            assert_eq!(brake.charge(HERE), Ok(()));
        }
        clock.advance(FORGIVE_EVERY * (FREE_TRIES_PER_NETWORK + 4));
        for _ in 0..FREE_TRIES_PER_NETWORK {
            assert_eq!(brake.charge(HERE), Ok(()), "the count decays");
        }
    }

    #[test]
    fn right_passwords_are_not_throttled() {
        let brake = Brake::new(fixed_clock());
        for _ in 0..10 * FREE_TRIES_PER_NETWORK {
            assert_eq!(brake.charge(HERE), Ok(()));
            brake.take_back(HERE);
        }
    }

    #[test]
    fn memory_is_bounded_and_the_worst_offenders_are_kept() {
        let clock = fixed_clock();
        let brake = Brake::new(clock);
        for _ in 0..FREE_TRIES_PER_NETWORK {
            brake.charge(HERE).unwrap();
        }
        for other in 0..(MAX_NETWORKS + 100) {
            let other = Ipv4Addr::from(u32::try_from(other).unwrap());
            let _ = brake.charge(IpAddr::V4(other));
        }
        assert!(brake.networks.lock().unwrap().len() <= MAX_NETWORKS);
        assert!(brake.charge(HERE).is_err(), "a flood of other networks must not evict the attacker");
    }
}
