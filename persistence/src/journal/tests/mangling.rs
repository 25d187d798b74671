//! Segments with arbitrary corruption. For any bytes: nothing panics, memory does not grow beyond the files, and the
//! result is either a prefix of what was written or an error that names the file and the offset.
//!
//! `PROPTEST_CASES` is the number of cases of each test.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::sample::{Index, select};
use proptest::test_runner::TestRunner;

use super::super::reader::Records;
use super::super::record::{FRAME_BYTES, HEADER_BYTES, Header, JournalId};
use super::damage::{restore, snapshot};
use super::*;

/// Default number of cases per test: they take a few seconds.
const CASES: u32 = 256;

/// Records in the journal that is corrupted.
const RECORDS: Seq = 20;

/// Allowed memory growth while files of a few kilobytes are read: noise of the process itself.
const GROWTH_BYTES_MAX: u64 = 256 << 20;

const GROUP_MAGIC: [u8; 4] = [0xB7, 0x48, 0x4C, 0xE9];

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// A corruption of a segment.
#[derive(Clone, Debug)]
enum Corruption {
    Flip(Index, u8),
    Overwrite(Index, Vec<u8>),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    Truncate(Index),
    Zero(Index, usize),
    /// A group frame with arbitrary fields.
    Frame {
        at: Index,
        length: u32,
        count: u32,
        first: Seq,
    },
    /// A complete group with the checksum of any segment, at any offset.
    Group {
        at: Index,
        segment: Seq,
        first: Seq,
        records: u64,
    },
    /// A complete header with arbitrary fields.
    Header {
        longest_group_bytes: u32,
        first: Seq,
        stale_end: u64,
        has_own_id: bool,
    },
    /// The bytes of another segment.
    Copy(Index),
}

fn sizes() -> impl Strategy<Value = u32> {
    prop_oneof![select(vec![0, 1, 4, 100, 1 << 24, i32::MAX as u32, u32::MAX - 24, u32::MAX]), any::<u32>()]
}

fn sequences() -> impl Strategy<Value = Seq> {
    prop_oneof![4 => 0..30u64, 1 => select(vec![u64::MAX, u64::MAX - 1, 1 << 63]), 1 => any::<u64>()]
}

fn ends() -> impl Strategy<Value = u64> {
    prop_oneof![0..600u64, select(vec![u64::MAX, 1 << 32]), any::<u64>()]
}

fn corruption() -> impl Strategy<Value = Corruption> {
    let bytes = || vec(any::<u8>(), 1..80);
    prop_oneof![
        (any::<Index>(), 1..=u8::MAX).prop_map(|(at, bits)| Corruption::Flip(at, bits)),
        (any::<Index>(), bytes()).prop_map(|(at, bytes)| Corruption::Overwrite(at, bytes)),
        (any::<Index>(), bytes()).prop_map(|(at, bytes)| Corruption::Insert(at, bytes)),
        (any::<Index>(), 1usize..200).prop_map(|(at, count)| Corruption::Remove(at, count)),
        any::<Index>().prop_map(Corruption::Truncate),
        (any::<Index>(), 1usize..200).prop_map(|(at, count)| Corruption::Zero(at, count)),
        (any::<Index>(), sizes(), sizes(), sequences()).prop_map(|(at, length, count, first)| Corruption::Frame {
            at,
            length,
            count,
            first
        }),
        (any::<Index>(), sequences(), sequences(), 1u64..4)
            .prop_map(|(at, segment, first, records)| Corruption::Group { at, segment, first, records }),
        (sizes(), sequences(), ends(), any::<bool>()).prop_map(
            |(longest_group_bytes, first, stale_end, has_own_id)| {
                Corruption::Header { longest_group_bytes, first, stale_end, has_own_id }
            }
        ),
        any::<Index>().prop_map(Corruption::Copy),
    ]
}

impl Corruption {
    fn apply(&self, bytes: &mut Vec<u8>, id: &JournalId, all_segments: &[Vec<u8>]) {
        let offset = |at: &Index, bytes: &[u8]| at.index(bytes.len() + 1);
        match self {
            Self::Flip(at, bits) if !bytes.is_empty() => {
                let at = at.index(bytes.len());
                bytes[at] ^= bits;
            }
            Self::Flip(..) => {}
            Self::Overwrite(at, new) => write_at(bytes, offset(at, bytes), new),
            Self::Insert(at, new) => {
                let at = offset(at, bytes);
                drop(bytes.splice(at..at, new.iter().copied()));
            }
            Self::Remove(at, count) => {
                let at = offset(at, bytes);
                let end = bytes.len().min(at + count);
                drop(bytes.drain(at..end));
            }
            Self::Truncate(at) => bytes.truncate(offset(at, bytes)),
            Self::Zero(at, count) => {
                let at = offset(at, bytes);
                let end = bytes.len().min(at + count);
                bytes[at..end].fill(0);
            }
            Self::Frame { at, length, count, first } => {
                let frame =
                    [&GROUP_MAGIC[..], &length.to_le_bytes(), &[7; 4], &count.to_le_bytes(), &first.to_le_bytes()];
                write_at(bytes, offset(at, bytes), &frame.concat());
            }
            Self::Group { at, segment, first, records } => {
                let records: Vec<_> = (0..*records).map(|number| record(first.saturating_add(number))).collect();
                write_at(bytes, offset(at, bytes), &group(&Header::new(0, *segment, *id), *first, &records));
            }
            Self::Header { longest_group_bytes, first, stale_end, has_own_id } => {
                let id = if *has_own_id { *id } else { JournalId::default() };
                let (longest_group_bytes, first, stale_end) = (*longest_group_bytes, *first, *stale_end);
                write_at(bytes, 0, &Header { longest_group_bytes, first, id, stale_end }.encode());
            }
            Self::Copy(from) => bytes.clone_from(from.get(all_segments)),
        }
    }
}

/// Overwrites bytes, and extends the file if it is too short.
fn write_at(bytes: &mut Vec<u8>, at: usize, new: &[u8]) {
    bytes.resize(bytes.len().max(at + new.len()), 0);
    bytes[at..at + new.len()].copy_from_slice(new);
}

/// A journal, its files except temporary ones, and its id.
fn journal() -> (TempDir, Files, JournalId) {
    let dir = written_journal(RECORDS);
    load_files(dir)
}

/// As [`journal`], with recycled files.
fn recycled_journal() -> (TempDir, Files, JournalId) {
    let dir = recycling::recycled_journal(RECORDS);
    load_files(dir)
}

fn load_files(dir: TempDir) -> (TempDir, Files, JournalId) {
    let mut files = snapshot(dir.path());
    files.retain(|path, _| path.extension().is_none_or(|extension| extension != "tmp"));
    let id = segment::read_id(dir.path()).unwrap().unwrap();
    (dir, files, id)
}

fn runner() -> TestRunner {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() })
}

/// Peak memory of the process, where the system reports it.
fn memory_bytes_max() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// Fails if the process's peak memory grew by more than [`GROWTH_BYTES_MAX`].
fn assert_small_growth(before: Option<u64>) {
    if let (Some(before), Some(after)) = (before, memory_bytes_max()) {
        assert!(after - before < GROWTH_BYTES_MAX, "memory grew from {before} to {after} bytes");
    }
}

/// The error names one of these files and an offset in it. For a file without a complete header, the offset may be
/// where its groups would start.
fn assert_names_place(error: &JournalError, files: &Files) {
    let JournalError::Damaged { file, offset, .. } = error else { panic!("{error}") };
    let bytes = files.get(file).unwrap_or_else(|| panic!("{error}"));
    assert!(*offset <= bytes.len().max(HEADER_BYTES) as u64, "{error}");
}

/// The recovered records are a prefix of what was written; on damage the error names the place and nothing is changed.
fn check_recovery(dir: &Path, files: &Files) {
    restore(dir, files);
    match open(dir, SMALL) {
        Ok(recovered) => {
            let read = contents(&recovered, recovered.first().unwrap_or(1));
            let (first, last) = (recovered.first().unwrap_or(1), recovered.last().unwrap_or(0));
            assert_eq!(read, expected(first, last));
        }
        Err(error) => {
            assert_names_place(&error, files);
            let mut files_after = snapshot(dir);
            files_after.retain(|path, _| files.contains_key(path));
            assert!(files_after == *files, "a damaged journal was changed: {error}");
        }
    }
}

#[test]
fn a_corrupted_journal_recovers_a_prefix_or_names_the_damage() {
    for (dir, files, id) in [journal(), recycled_journal()] {
        let segments = segments(dir.path());
        let all_segments: Vec<Vec<u8>> = segments.iter().map(|path| files[path].clone()).collect();
        let before = memory_bytes_max();
        runner()
            .run(&vec((any::<Index>(), corruption()), 1..4), |corruptions| {
                let mut files = files.clone();
                for (segment, corruption) in &corruptions {
                    let bytes = files.get_mut(segment.get(&segments)).unwrap();
                    corruption.apply(bytes, &id, &all_segments);
                }
                check_recovery(dir.path(), &files);
                Ok(())
            })
            .unwrap();
        assert_small_growth(before);
    }
}

#[test]
fn a_segment_of_arbitrary_bytes_recovers_nothing_or_is_reported_as_damaged() {
    let (dir, mut files, id) = journal();
    files.retain(|path, _| path.extension().is_none_or(|extension| extension != "journal"));
    let before = memory_bytes_max();
    let bytes = prop_oneof![vec(any::<u8>(), 0..200), vec(any::<u8>(), HEADER_BYTES..2000)];
    runner()
        .run(&(bytes, sequences(), any::<bool>()), |(bytes, first, has_header)| {
            let first = first.max(1);
            let mut files = files.clone();
            let header = Header::new(1 << 20, first, id).encode();
            let bytes = if has_header { [&header[..], &bytes].concat() } else { bytes };
            files.insert(segment::segment_path(dir.path(), first), bytes);
            restore(dir.path(), &files);
            match open(dir.path(), SMALL) {
                Ok(recovered) => assert_eq!((recovered.first(), recovered.last()), (None, None)),
                Err(error) => assert_names_place(&error, &files),
            }
            Ok(())
        })
        .unwrap();
    assert_small_growth(before);
}

#[test]
fn a_reader_of_a_corrupted_journal_yields_a_prefix_and_then_names_the_damage() {
    for journal in [journal(), recycled_journal()] {
        check_reader(journal);
    }
}

fn check_reader((dir, files, id): (TempDir, Files, JournalId)) {
    let segments = segments(dir.path());
    let all_segments: Vec<Vec<u8>> = segments.iter().map(|path| files[path].clone()).collect();
    let sources = segment_sources(dir.path());
    let before = memory_bytes_max();
    runner()
        .run(&(vec((any::<Index>(), corruption()), 1..4), 0..=RECORDS + 1), |(corruptions, from)| {
            // Recovery saw these files intact: the damage happened later.
            let mut files = files.clone();
            for (segment, corruption) in &corruptions {
                corruption.apply(files.get_mut(segment.get(&segments)).unwrap(), &id, &all_segments);
            }
            restore(dir.path(), &files);
            let mut records = Records::new(sources.clone(), from, RECORDS, id).unwrap();
            let mut next = from.max(1);
            for read in records.by_ref() {
                match read {
                    Ok(read) => assert_eq!(read, (next, record(next))),
                    Err(error) => {
                        assert_names_place(&error, &files);
                        // Nothing may follow an error.
                        next = RECORDS;
                    }
                }
                next += 1;
            }
            assert_eq!(next, from.max(1).max(RECORDS + 1));
            assert!(records.next().is_none(), "nothing follows the end");
            Ok(())
        })
        .unwrap();
    assert_small_growth(before);
}

#[test]
fn a_group_longer_than_its_file_takes_no_memory() {
    let (dir, files, id) = journal();
    let sources = segment_sources(dir.path());
    let path = &segments(dir.path())[0];
    let before = memory_bytes_max();
    for length in [1 << 20, u32::MAX >> 1, u32::MAX - FRAME_BYTES as u32, u32::MAX] {
        let mut files = files.clone();
        files.get_mut(path).unwrap()[HEADER_BYTES + 4..HEADER_BYTES + 8].copy_from_slice(&length.to_le_bytes());
        check_recovery(dir.path(), &files);
        restore(dir.path(), &files);
        let read: Vec<_> = Records::new(sources.clone(), 1, RECORDS, id).unwrap().collect();
        assert!(matches!(&read[..], [Err(JournalError::Damaged { offset, .. })] if *offset == HEADER_BYTES as u64));
    }
    assert_small_growth(before);
}
