//! Maps keys to hash slots and slots to the nodes of a Cluster.

use std::sync::Arc;

use crate::{
    Error, Reply,
    node::{Address, Node},
};

/// Number of hash slots of a Cluster.
const SLOTS: u16 = 16_384;

/// The slot of a key: CRC-16/XMODEM of its hash tag, the part between the first `{` and the next
/// `}`, or of the whole key if that part is missing or empty.
pub(crate) fn slot(key: &str) -> u16 {
    crc16(tag(key).as_bytes()) % SLOTS
}

/// The slot shared by all keys, or [`Error::Keys`].
pub(crate) fn common_slot(keys: &[impl AsRef<str>]) -> Result<u16, Error> {
    let [first, rest @ ..] = keys else { return Err(Error::Keys) };
    let slot = slot(first.as_ref());
    // Also checked on a single node, so that code tested there works on a Cluster.
    let same =
        rest.iter().all(|key| tag(key.as_ref()) == tag(first.as_ref()) || self::slot(key.as_ref()) == slot);
    if same { Ok(slot) } else { Err(Error::Keys) }
}

fn tag(key: &str) -> &str {
    let tagged = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    match tagged {
        Some((tag, _)) if !tag.is_empty() => tag,
        _ => key,
    }
}

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| (crc << 8) ^ CRC_OF_BYTE[usize::from((crc >> 8) as u8 ^ byte)])
}

const CRC_OF_BYTE: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte: u16 = 0;
    while byte < 256 {
        let mut crc = byte << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            bit += 1;
        }
        table[byte as usize] = crc;
        byte += 1;
    }
    table
};

/// The slot map. A stale map is harmless: the wrong node redirects with MOVED.
#[derive(Debug)]
pub(crate) struct Map(Vec<Range>);

#[derive(Debug)]
struct Range {
    last: u16,
    node: Arc<Node>,
}

impl Map {
    /// Maps all slots to one node: a single Redis, or a Cluster before its map is loaded.
    pub(crate) fn all_at(node: Arc<Node>) -> Self {
        Self(vec![Range { last: SLOTS - 1, node }])
    }

    /// Builds the map. Unassigned slots go to the node of the next range, which rejects them.
    pub(crate) fn from_ranges(
        ranges: Vec<Served>,
        mut node: impl FnMut(Address) -> Result<Arc<Node>, Error>,
    ) -> Result<Self, Error> {
        let ranges: Result<Vec<Range>, Error> = ranges
            .into_iter()
            .map(|range| Ok(Range { last: range.last, node: node(range.primary)? }))
            .collect();
        let mut ranges = ranges?;
        ranges.sort_unstable_by_key(|range| range.last);
        Ok(Self(ranges))
    }

    /// The primary that owns the slot.
    pub(crate) fn primary(&self, slot: u16) -> Option<&Arc<Node>> {
        self.0.get(self.0.partition_point(|range| range.last < slot)).map(|range| &range.node)
    }

    /// All primaries without duplicates.
    pub(crate) fn primaries(&self) -> Vec<Arc<Node>> {
        let mut nodes: Vec<Arc<Node>> = Vec::new();
        for range in &self.0 {
            if !nodes.iter().any(|node| Arc::ptr_eq(node, &range.node)) {
                nodes.push(Arc::clone(&range.node));
            }
        }
        nodes
    }
}

/// A slot range and its primary. Its start follows from the range before.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Served {
    last: u16,
    primary: Address,
}

/// Parses the reply to `CLUSTER SLOTS`: for each range the first slot, the last slot, the primary
/// and its replicas. A node that does not know its own address sends no host; then it is the host
/// we connected to.
pub(crate) fn read(answer: &Reply, asked: &Address) -> Result<Vec<Served>, Error> {
    let odd = || Error::Reply("unexpected reply to CLUSTER SLOTS".to_owned());
    let mut ranges = Vec::new();
    for range in answer.list()? {
        let [_, last, primary, ..] = range.list()? else { return Err(odd()) };
        let [host, port, ..] = primary.list()? else { return Err(odd()) };
        let host = match host {
            Reply::Bytes(host) if !host.is_empty() && host != b"?" => {
                String::from_utf8_lossy(host).into_owned()
            }
            _ => asked.host.clone(),
        };
        let port = u16::try_from(port.int()?).map_err(|_| odd())?;
        let last = u16::try_from(last.int()?).ok().filter(|last| *last < SLOTS).ok_or_else(odd)?;
        ranges.push(Served { last, primary: Address { host, port } });
    }
    if ranges.is_empty() { Err(Error::Down("the cluster serves no slots".to_owned())) } else { Ok(ranges) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc16_matches_the_redis_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(slot("foo"), 12_182);
        assert_eq!(slot("bar"), 5_061);
    }

    #[test]
    fn the_first_complete_non_empty_hash_tag_counts() {
        assert_eq!(slot("gate:{foo}:1"), slot("foo"));
        assert_eq!(slot("{foo}{bar}"), slot("foo"));
        assert_eq!(tag("{}foo"), "{}foo");
        assert_eq!(tag("foo}{"), "foo}{");
        assert_eq!(tag("a{{b}}"), "{b");
    }

    #[test]
    fn keys_of_two_slots_and_no_keys_are_refused() {
        assert_eq!(common_slot(&["{e}:1", "{e}:2"]), Ok(slot("e")));
        assert_eq!(common_slot(&["{e}:1", "{f}:1"]), Err(Error::Keys));
        assert_eq!(common_slot(&[""; 0]), Err(Error::Keys));
    }

    fn node(host: Reply, port: i64) -> Reply {
        Reply::List(vec![host, Reply::Int(port), Reply::Bytes(b"id".to_vec())])
    }

    #[test]
    fn a_primary_without_a_host_is_on_the_queried_host() {
        let asked = Address { host: "10.0.0.7".to_owned(), port: 1 };
        let known = Reply::Bytes(b"10.0.0.8".to_vec());
        let answer = Reply::List(vec![
            Reply::List(vec![
                Reply::Int(0),
                Reply::Int(99),
                node(Reply::Nil, 7_000),
                node(known.clone(), 7_003),
            ]),
            Reply::List(vec![Reply::Int(100), Reply::Int(16_383), node(known, 7_001)]),
        ]);
        let expected = vec![
            Served { last: 99, primary: Address { host: "10.0.0.7".to_owned(), port: 7_000 } },
            Served { last: 16_383, primary: Address { host: "10.0.0.8".to_owned(), port: 7_001 } },
        ];
        assert_eq!(read(&answer, &asked).unwrap(), expected);
    }

    #[test]
    fn malformed_cluster_slots_replies_are_errors() {
        let asked = Address { host: "h".to_owned(), port: 1 };
        for answer in [
            Reply::Nil,
            Reply::List(vec![]),
            Reply::List(vec![Reply::Int(1)]),
            Reply::List(vec![Reply::List(vec![Reply::Int(0), Reply::Int(16_384), node(Reply::Nil, 1)])]),
            Reply::List(vec![Reply::List(vec![Reply::Int(0), Reply::Int(1), node(Reply::Nil, 70_000)])]),
        ] {
            assert!(read(&answer, &asked).is_err(), "{answer:?}");
        }
    }
}
