//! Hashes of passwords: Argon2id, and bcrypt of accounts that came from elsewhere. Pure, and slow on purpose.

use argon2::{Algorithm, Argon2, Block, Params, Version};
use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use subtle::ConstantTimeEq as _;

/// Bytes of a salt and of a hash.
pub(crate) const SALT_LEN: usize = 16;
const HASH_LEN: usize = 32;

/// A stored hash may ask for at most this much memory, in KiB: more than we ever asked for means that the row is damaged.
const MAX_MEMORY_KIB: u32 = 256 * 1024;
/// Likewise for passes over the memory.
const MAX_PASSES: u32 = 16;

/// How hard a hash is to make. One lane: a hash takes one thread of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashCost {
    /// Memory, in KiB.
    pub memory_kib: u32,
    /// Passes over the memory.
    pub passes: u32,
}

impl HashCost {
    /// 19 MiB and two passes, about 16 ms: what OWASP recommends as the least.
    pub const STANDARD: Self = Self { memory_kib: 19 * 1024, passes: 2 };
}

/// A stored hash that nobody can compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stored hash is in no form we know")]
pub(crate) struct BadHash;

/// Memory of one worker, kept between hashes: asking the system for 19 MiB each time would cost a third of the hash.
#[derive(Default)]
pub(crate) struct Memory(Vec<Block>);

/// Hashes a password, in the usual form `$argon2id$v=19$m=…,t=…,p=1$salt$hash`.
pub(crate) fn make(password: &str, salt: [u8; SALT_LEN], cost: HashCost, memory: &mut Memory) -> String {
    let hash = argon2id(password, &salt, cost, memory).expect("the cost is within bounds");
    format!(
        "$argon2id$v=19$m={},t={},p=1${}${}",
        cost.memory_kib,
        cost.passes,
        STANDARD_NO_PAD.encode(salt),
        STANDARD_NO_PAD.encode(hash)
    )
}

/// Whether the password is the one that was hashed.
pub(crate) fn verify(password: &str, stored: &str, memory: &mut Memory) -> Result<bool, BadHash> {
    if stored.starts_with("$2") {
        return bcrypt::verify(password, stored).map_err(|_| BadHash);
    }
    let parsed = Parsed::new(stored).ok_or(BadHash)?;
    let hash = argon2id(password, &parsed.salt, parsed.cost, memory).ok_or(BadHash)?;
    Ok(bool::from(hash.ct_eq(&parsed.hash)))
}

/// Whether the hash was made the way new ones are.
pub(crate) fn is_current(stored: &str, cost: HashCost) -> bool {
    Parsed::new(stored).is_some_and(|parsed| parsed.cost == cost)
}

struct Parsed {
    cost: HashCost,
    salt: Vec<u8>,
    hash: [u8; HASH_LEN],
}

impl Parsed {
    fn new(stored: &str) -> Option<Self> {
        let rest = stored.strip_prefix("$argon2id$v=19$m=")?;
        let mut parts = rest.split('$');
        let (cost, salt, hash) = (parts.next()?, parts.next()?, parts.next()?);
        let (memory, passes) = cost.strip_suffix(",p=1")?.split_once(",t=")?;
        if parts.next().is_some() {
            return None;
        }
        Some(Self {
            cost: HashCost { memory_kib: memory.parse().ok()?, passes: passes.parse().ok()? },
            salt: STANDARD_NO_PAD.decode(salt).ok()?,
            hash: STANDARD_NO_PAD.decode(hash).ok()?.try_into().ok()?,
        })
    }
}

fn argon2id(password: &str, salt: &[u8], cost: HashCost, memory: &mut Memory) -> Option<[u8; HASH_LEN]> {
    if cost.memory_kib > MAX_MEMORY_KIB || cost.passes > MAX_PASSES {
        return None;
    }
    let params = Params::new(cost.memory_kib, cost.passes, 1, Some(HASH_LEN)).ok()?;
    let blocks = params.block_count();
    if memory.0.len() < blocks {
        memory.0.resize(blocks, Block::new());
    }
    let mut hash = [0; HASH_LEN];
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into_with_memory(password.as_bytes(), salt, &mut hash, &mut memory.0[..blocks])
        .ok()?;
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHEAP: HashCost = HashCost { memory_kib: 64, passes: 1 };
    const SALT: [u8; SALT_LEN] = [7; SALT_LEN];

    #[test]
    fn only_the_same_password_verifies() {
        let memory = &mut Memory::default();
        let stored = make("correct horse", SALT, CHEAP, memory);
        assert_eq!(verify("correct horse", &stored, memory), Ok(true));
        assert_eq!(verify("correct horsf", &stored, memory), Ok(false));
        assert_eq!(verify("", &stored, memory), Ok(false));
        assert!(stored.starts_with("$argon2id$v=19$m=64,t=1,p=1$"), "{stored}");
    }

    #[test]
    fn a_hash_of_another_implementation_verifies() {
        // From the reference implementation's own tests: two passes, 256 KiB, one lane, salt `somesalt`.
        let known = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
        assert_eq!(verify("password", known, &mut Memory::default()), Ok(true));
    }

    #[test]
    fn memory_left_by_one_hash_does_not_change_the_next() {
        let memory = &mut Memory::default();
        let large = make("one", SALT, HashCost { memory_kib: 256, passes: 1 }, memory);
        let small = make("two", SALT, CHEAP, memory);
        assert_eq!(small, make("two", SALT, CHEAP, &mut Memory::default()));
        assert_eq!(verify("one", &large, memory), Ok(true));
    }

    #[test]
    fn bcrypt_verifies_and_is_not_current() {
        let made = bcrypt::hash("imported", 4).unwrap();
        let memory = &mut Memory::default();
        assert_eq!(verify("imported", &made, memory), Ok(true));
        assert_eq!(verify("another", &made, memory), Ok(false));
        assert!(!is_current(&made, CHEAP));
    }

    #[test]
    fn a_hash_of_another_cost_is_not_current() {
        let stored = make("x", SALT, CHEAP, &mut Memory::default());
        assert!(is_current(&stored, CHEAP));
        assert!(!is_current(&stored, HashCost { passes: 2, ..CHEAP }));
        assert!(!is_current(&stored, HashCost { memory_kib: 128, ..CHEAP }));
    }

    #[test]
    fn a_damaged_hash_is_an_error_and_asks_for_no_memory() {
        let huge = "$argon2id$v=19$m=4294967295,t=1,p=1$BwcHBwcHBwcHBwcHBwcHBw$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        for bad in
            ["", "plain", "$2a$", "$argon2id$v=19$m=64,t=1,p=1$x", "$argon2i$v=19$m=64,t=1,p=1$a$b", huge]
        {
            assert_eq!(verify("x", bad, &mut Memory::default()), Err(BadHash), "{bad}");
        }
    }
}
