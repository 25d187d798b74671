//! The helper thread: what takes long and nobody waits for. It makes spares of released segments, so that in the long
//! run no file is made anew, unlinks those that are too many, and lays one down ahead when none is left.
//!
//! A spare of a released segment saves the zeros of a new one: at 256 records a sync a third of the bytes, a fifth of the
//! processor, and nine tenths of the 99th percentile (docs/performance.md, finding 10).

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc;

use super::segment;
use super::state::{Chore, Sealed, State, lock};

/// Spares kept at most. A full segment takes one, and gives its own file back once the database has followed; the second
/// is for when that takes as long as the next segment. More would only hold the disk.
const SPARES_MAX: usize = 2;

/// Until it is told to stop.
pub(super) fn do_chores<T>(state: &State<T>, chores: &mpsc::Receiver<Chore>) {
    let mut helper = Helper { state, released: VecDeque::new(), spares_made: 0 };
    for chore in chores {
        match chore {
            Chore::Release(segment) => {
                helper.released.push_back(segment);
                helper.clear_away();
            }
            Chore::Prepare => {
                helper.clear_away();
                helper.give_up_spares();
                helper.prepare_spare();
                helper.prepare_reserve();
            }
            Chore::Confirm => state.note_confirmed(),
            Chore::Stop => return state.note_confirmed(),
        }
    }
}

struct Helper<'a, T> {
    state: &'a State<T>,
    /// Segments still under their names, the oldest first.
    released: VecDeque<Sealed>,
    /// Each spare has a number no other had, so that a name never stands for two files.
    spares_made: u64,
}

impl<T> Helper<'_, T> {
    /// One that cannot be taken away now is tried again at the next chore. Until then the later ones stay too: without
    /// it they would leave a hole, which the next open could not tell from damage.
    fn clear_away(&mut self) {
        while let Some(oldest) = self.released.pop_front() {
            if let Err(error) = self.take_away(&oldest) {
                tracing::error!(%error, file = %oldest.path.display(), "cannot remove a released journal segment");
                self.released.push_front(oldest);
                return;
            }
        }
    }

    fn take_away(&mut self, segment: &Sealed) -> io::Result<()> {
        let dir = &self.state.dir;
        let taken = if self.may_recycle(segment) {
            let number = self.number_spare();
            segment::recycle(dir, number, &segment.path, segment.stale_end)
                .map(|spare| lock(&self.state.spares).push(spare))
        } else {
            segment::remove(dir, &segment.path)
        };
        match taken {
            // An earlier try got as far as this; the file, if it is left, is removed by the next open.
            Err(error) if error.kind() == io::ErrorKind::NotFound => dir.sync(),
            taken => taken,
        }
    }

    fn may_recycle(&self, segment: &Sealed) -> bool {
        let spares = lock(&self.state.spares).len();
        segment.bytes == self.state.options.segment_bytes
            && !segment.path.is_read()
            && spares < SPARES_MAX
            && self.state.has_room_beside(spares + 1)
    }

    /// A record larger than a segment may have taken the room of a spare.
    fn give_up_spares(&self) {
        let mut spares = lock(&self.state.spares);
        while !self.state.has_room_beside(spares.len()) {
            let Some(spare) = spares.pop() else { return };
            if let Err(error) = segment::remove(&self.state.dir, &spare.path) {
                tracing::error!(%error, file = %spare.path.display(), "cannot remove a spare journal segment");
            }
        }
    }

    fn prepare_spare(&mut self) {
        if !lock(&self.state.spares).is_empty() || !self.state.has_room_beside(1) {
            return;
        }
        let number = self.number_spare();
        match segment::create_spare(&self.state.dir, number, self.state.options.segment_bytes) {
            Ok(spare) => lock(&self.state.spares).push(spare),
            Err(error) => tracing::warn!(%error, "cannot prepare the next journal segment ahead"),
        }
    }

    /// IMPORTANT: whenever files may be opened, not only when one was just used: the next time they may not.
    fn prepare_reserve(&self) {
        let mut held = lock(&self.state.reserve);
        if held.is_some() {
            return;
        }
        match segment::create_reserve(&self.state.dir) {
            Ok(reserve) => *held = Some(reserve),
            Err(error) => tracing::warn!(%error, "cannot hold a file open for the next journal segment"),
        }
    }

    fn number_spare(&mut self) -> u64 {
        self.spares_made += 1;
        self.spares_made
    }
}
