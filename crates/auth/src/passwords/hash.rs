//! Password hashes: Argon2id, and bcrypt of imported accounts. Pure, and slow on purpose.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use argon2::{Algorithm, Argon2, Block, Params, Version};
use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use subtle::ConstantTimeEq as _;

/// Length of a salt and of a hash, in bytes.
pub(crate) const SALT_LEN: usize = 16;
const HASH_LEN: usize = 32;

/// Maximum memory of a stored hash, in KiB. More than we ever used means that the row is damaged.
const MAX_MEMORY_KIB: u32 = 256 * 1024;
/// Maximum number of passes of a stored hash.
const MAX_PASSES: u32 = 16;

/// Maximum bcrypt cost that is verified, about a second. A higher one would block a thread of the
/// pool for minutes.
pub(crate) const MAX_BCRYPT_COST: u32 = 14;

/// Cost of a new hash. One lane: a hash uses one thread of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashCost {
    /// Memory in KiB.
    pub memory_kib: u32,
    /// Passes over the memory.
    pub passes: u32,
}

impl HashCost {
    /// 19 MiB and two passes, about 16 ms: the minimum recommended by OWASP.
    pub const STANDARD: Self = Self { memory_kib: 19 * 1024, passes: 2 };
}

/// A stored hash that cannot be verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stored hash has an unknown format")]
pub(crate) struct BadHash;

/// Memory of one worker, reused between hashes: allocating 19 MiB each time would cost a third of
/// the hash.
#[derive(Default)]
pub(crate) struct HashBuffer {
    blocks: Vec<Block>,
    work: Arc<WorkCounter>,
}

impl HashBuffer {
    /// Creates an empty buffer. `work` counts what is hashed with it.
    pub(crate) fn new(work: Arc<WorkCounter>) -> Self {
        Self { blocks: Vec::new(), work }
    }
}

/// Amount of hashing done: a noise-free substitute for timing, for tests.
#[derive(Debug, Default)]
pub(crate) struct WorkCounter {
    /// KiB times passes.
    argon2: AtomicU64,
    /// Bcrypt rounds.
    bcrypt: AtomicU64,
}

impl WorkCounter {
    fn did_argon2(&self, cost: HashCost) {
        self.argon2.fetch_add(u64::from(cost.memory_kib) * u64::from(cost.passes), Ordering::Relaxed);
    }

    fn did_bcrypt(&self, cost: u32) {
        self.bcrypt.fetch_add(1 << cost, Ordering::Relaxed);
    }

    /// The work done so far, of both kinds.
    #[cfg(test)]
    pub(crate) fn done(&self) -> [u64; 2] {
        [&self.argon2, &self.bcrypt].map(|count| count.load(Ordering::Relaxed))
    }
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The password is wrong.
    Wrong,
    /// The password is right. If its hash is outdated, `upgrade` is a new one.
    Right {
        /// The hash to store instead.
        upgrade: Option<String>,
    },
}

/// Cost of new hashes, and of the most expensive imported one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) cost: HashCost,
    pub(crate) salt: [u8; SALT_LEN],
    /// `None`: no imported hash is left.
    pub(crate) imported: Option<u32>,
}

/// Compares a password with a stored hash, or with none, which never matches. The work is the same
/// in all cases: one Argon2id hash and, while there are imported accounts, as many bcrypt rounds as
/// the most expensive of them needs. Otherwise the response time would reveal which accounts exist
/// and which were imported.
pub(crate) fn compare(
    password: &str,
    stored: Option<&str>,
    terms: Terms,
    memory: &mut HashBuffer,
) -> Result<Verdict, BadHash> {
    let Terms { cost, salt, imported } = terms;
    let Some(stored) = stored else {
        let _nobodys = make(password, salt, cost, memory);
        spend_bcrypt(password, None, imported, &memory.work);
        return Ok(Verdict::Wrong);
    };
    if is_bcrypt(stored) {
        let right = verify_bcrypt(password, stored, imported, &memory.work)?;
        // Used as the new hash if the password is right, and done in all other cases to equalise
        // the work.
        let upgrade = Some(make(password, salt, cost, memory));
        return Ok(if right { Verdict::Right { upgrade } } else { Verdict::Wrong });
    }
    let right = verify(password, stored, memory)?;
    spend_bcrypt(password, None, imported, &memory.work);
    let upgrade = (right && !is_current(stored, cost)).then(|| make(password, salt, cost, memory));
    Ok(if right { Verdict::Right { upgrade } } else { Verdict::Wrong })
}

/// Returns an error unless a hash from another system can be verified. Argon2id must have our own
/// cost; any other would reveal imported accounts by timing.
pub(crate) fn check_import(stored: &str, cost: HashCost) -> Result<(), &'static str> {
    if stored.starts_with("$argon2id$") {
        let parsed =
            Parsed::new(stored).ok_or("an Argon2id hash must have version 19, one lane and 32 bytes")?;
        let fits = parsed.cost == cost && parsed.salt.len() >= argon2::MIN_SALT_LEN;
        return if fits {
            Ok(())
        } else {
            Err("an Argon2id hash must have our memory and passes (m=19456,t=2)")
        };
    }
    if !["$2a$", "$2b$", "$2y$"].iter().any(|kind| stored.starts_with(kind)) {
        return Err("it is neither bcrypt ($2a$, $2b$, $2y$) nor Argon2id");
    }
    let parts: bcrypt::HashParts =
        stored.parse().map_err(|_| "it is no whole bcrypt hash of 60 characters")?;
    match parts.get_cost() {
        4..=MAX_BCRYPT_COST => Ok(()),
        _ => Err("a bcrypt hash must cost 4 to 14"),
    }
}

fn is_bcrypt(stored: &str) -> bool {
    stored.starts_with("$2")
}

fn verify_bcrypt(
    password: &str,
    stored: &str,
    dearest: Option<u32>,
    work: &WorkCounter,
) -> Result<bool, BadHash> {
    let cost = stored.parse::<bcrypt::HashParts>().map_err(|_| BadHash)?.get_cost();
    if cost > MAX_BCRYPT_COST {
        return Err(BadHash);
    }
    work.did_bcrypt(cost);
    let right = bcrypt::verify(password, stored).map_err(|_| BadHash)?;
    spend_bcrypt(password, Some(cost), dearest, work);
    Ok(right)
}

/// Performs the bcrypt rounds that a comparison did not need. A hash of cost c has 2^c rounds, so
/// adding one of each cost from c upwards gives as many rounds as one hash of the highest cost: 8 +
/// 8 + 16 = 32.
fn spend_bcrypt(password: &str, done: Option<u32>, dearest: Option<u32>, work: &WorkCounter) {
    let Some(dearest) = dearest else { return };
    let costs = done.map_or(dearest..=dearest, |done| done..=dearest.saturating_sub(1));
    for cost in costs {
        work.did_bcrypt(cost);
        // Only the work matters.
        let _unused = bcrypt::hash_with_salt(password, cost, [0; SALT_LEN]);
    }
}

/// Hashes a password, in the format `$argon2id$v=19$m=…,t=…,p=1$salt$hash`.
pub(crate) fn make(password: &str, salt: [u8; SALT_LEN], cost: HashCost, memory: &mut HashBuffer) -> String {
    let hash = argon2id(password, &salt, cost, memory).expect("the cost is within bounds");
    format!(
        "$argon2id$v=19$m={},t={},p=1${}${}",
        cost.memory_kib,
        cost.passes,
        STANDARD_NO_PAD.encode(salt),
        STANDARD_NO_PAD.encode(hash)
    )
}

/// Whether the password matches an Argon2id hash.
fn verify(password: &str, stored: &str, memory: &mut HashBuffer) -> Result<bool, BadHash> {
    let parsed = Parsed::new(stored).ok_or(BadHash)?;
    let hash = argon2id(password, &parsed.salt, parsed.cost, memory).ok_or(BadHash)?;
    Ok(bool::from(hash.ct_eq(&parsed.hash)))
}

/// Whether the hash has the current format and cost.
fn is_current(stored: &str, cost: HashCost) -> bool {
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

fn argon2id(password: &str, salt: &[u8], cost: HashCost, memory: &mut HashBuffer) -> Option<[u8; HASH_LEN]> {
    if cost.memory_kib > MAX_MEMORY_KIB || cost.passes > MAX_PASSES {
        return None;
    }
    let params = Params::new(cost.memory_kib, cost.passes, 1, Some(HASH_LEN)).ok()?;
    memory.work.did_argon2(cost);
    let blocks = params.block_count();
    if memory.blocks.len() < blocks {
        memory.blocks.resize(blocks, Block::new());
    }
    let mut hash = [0; HASH_LEN];
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into_with_memory(password.as_bytes(), salt, &mut hash, &mut memory.blocks[..blocks])
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
        let memory = &mut HashBuffer::default();
        let stored = make("correct horse", SALT, CHEAP, memory);
        assert_eq!(verify("correct horse", &stored, memory), Ok(true));
        assert_eq!(verify("correct horsf", &stored, memory), Ok(false));
        assert_eq!(verify("", &stored, memory), Ok(false));
        assert!(stored.starts_with("$argon2id$v=19$m=64,t=1,p=1$"), "{stored}");
    }

    #[test]
    fn a_reference_implementation_hash_verifies() {
        // From the tests of the reference implementation: two passes, 256 KiB, one lane, salt
        // `somesalt`.
        let known = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4";
        assert_eq!(verify("password", known, &mut HashBuffer::default()), Ok(true));
    }

    #[test]
    fn memory_left_by_one_hash_does_not_change_the_next() {
        let memory = &mut HashBuffer::default();
        let large = make("one", SALT, HashCost { memory_kib: 256, passes: 1 }, memory);
        let small = make("two", SALT, CHEAP, memory);
        assert_eq!(small, make("two", SALT, CHEAP, &mut HashBuffer::default()));
        assert_eq!(verify("one", &large, memory), Ok(true));
    }

    fn compared(
        password: &str,
        stored: Option<&str>,
        imported: Option<u32>,
    ) -> (Result<Verdict, BadHash>, [u64; 2]) {
        let (memory, terms) = (&mut HashBuffer::default(), Terms { cost: CHEAP, salt: SALT, imported });
        let verdict = compare(password, stored, terms, memory);
        (verdict, memory.work.done())
    }

    #[test]
    fn bcrypt_verifies_and_is_replaced() {
        let made = bcrypt::hash("imported", 4).unwrap();
        let new = make("imported", SALT, CHEAP, &mut HashBuffer::default());
        assert_eq!(compared("imported", Some(&made), None).0, Ok(Verdict::Right { upgrade: Some(new) }));
        assert_eq!(compared("another", Some(&made), None).0, Ok(Verdict::Wrong));
    }

    #[test]
    fn only_verifiable_hashes_can_be_imported() {
        let own = make("x", SALT, CHEAP, &mut HashBuffer::default());
        let made = bcrypt::hash("x", 4).unwrap();
        let (head, tail) = (&made[..4], &made[6..]);
        for good in [own.clone(), made.clone(), format!("{head}14{tail}"), made.replacen("$2b$", "$2y$", 1)] {
            assert_eq!(check_import(&good, CHEAP), Ok(()), "{good}");
        }
        let bad = [
            format!("{head}15{tail}"),
            format!("{head}03{tail}"),
            made[..59].to_owned(),
            made.replacen("$2b$", "$2x$", 1),
            own.replacen("t=1", "t=2", 1),
            own.replacen("m=64", "m=128", 1),
            own.replacen("t=1", "t=0", 1),
            own.replacen("p=1", "p=2", 1),
            own.replacen("argon2id", "argon2i", 1),
            String::new(),
        ];
        for bad in bad {
            assert!(check_import(&bad, CHEAP).is_err(), "{bad}");
        }
    }

    #[test]
    fn password_comparison_cost_is_independent_of_the_stored_hash() {
        let own = make("right", SALT, CHEAP, &mut HashBuffer::default());
        let cheap = bcrypt::hash("right", 4).unwrap();
        let dear = bcrypt::hash("right", 7).unwrap();
        for stored in [None, Some(&own), Some(&cheap), Some(&dear)] {
            for password in ["right", "wrong"] {
                let (verdict, work) = compared(password, stored.map(String::as_str), Some(7));
                let expected = stored.is_some() && password == "right";
                assert_eq!(matches!(verdict, Ok(Verdict::Right { .. })), expected, "{stored:?}");
                assert_eq!(work, [64, 1 << 7], "{password} against {stored:?}");
            }
        }
        for stored in [None, Some(own.as_str())] {
            assert_eq!(compared("wrong", stored, None).1, [64, 0], "no imported accounts: {stored:?}");
        }
    }

    #[test]
    fn a_bcrypt_cost_above_the_maximum_is_not_verified() {
        let made = bcrypt::hash("right", 4).unwrap();
        let (head, tail) = (&made[..4], &made[6..]);
        assert_eq!(compared("right", Some(&format!("{head}15{tail}")), None).0, Err(BadHash));
        assert_eq!(compared("right", Some(&format!("{head}31{tail}")), None).0, Err(BadHash));
    }

    #[test]
    fn a_hash_of_another_cost_is_not_current() {
        let stored = make("x", SALT, CHEAP, &mut HashBuffer::default());
        assert!(is_current(&stored, CHEAP));
        assert!(!is_current(&stored, HashCost { passes: 2, ..CHEAP }));
        assert!(!is_current(&stored, HashCost { memory_kib: 128, ..CHEAP }));
    }

    #[test]
    fn a_damaged_hash_is_an_error_and_allocates_no_memory() {
        let huge = "$argon2id$v=19$m=4294967295,t=1,p=1$BwcHBwcHBwcHBwcHBwcHBw$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        for bad in
            ["", "plain", "$2a$", "$argon2id$v=19$m=64,t=1,p=1$x", "$argon2i$v=19$m=64,t=1,p=1$a$b", huge]
        {
            assert_eq!(compared("x", Some(bad), None).0, Err(BadHash), "{bad}");
        }
    }
}
