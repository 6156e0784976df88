//! What leaves a log at its new end: a replica that followed another leader cuts what that leader does not have.

use super::error::LogError;
use super::partition_log::Log;
use super::retention::SegmentFiles;
use super::segment::Active;
use super::storage::Storage;
use crate::core::types::{Millis, Offset};

impl<S: Storage> Log<S> {
    /// Cuts the log so that it ends at or before `offset`: before, if a batch holds `offset` in its middle, because that batch goes as a whole.
    /// Nothing happens if the log ends there already. Below the log start, the log starts anew at `offset`. Files of segments that fall away are
    /// for the caller to remove; [`Log::end`] says where the log ends now. Epochs and producers are the caller's business.
    ///
    /// A range that was handed out and is still being sent may come to an early end.
    pub fn truncate_to(&mut self, offset: Offset, now: Millis) -> Result<SegmentFiles, LogError> {
        self.usable()?;
        if offset >= self.end {
            return Ok(SegmentFiles::default());
        }
        if offset < self.start || self.segment(0).is_none_or(|first| offset < first.base) {
            return self.truncate_fully_and_start_at(offset, now);
        }
        self.generation += 1;
        let mut out = SegmentFiles::default();
        let keep = self.closed.partition_point(|s| s.base <= offset);
        if self.active.as_ref().is_some_and(|active| active.segment.base > offset) {
            // The last segment that starts at or before `offset` becomes the one that is appended to.
            self.reopen(keep - 1, &mut out)?;
        }
        self.end = offset;
        if let Some(active) = &mut self.active
            && let Some(place) = active.find(&self.files, offset).map_err(|e| LogError::io("read", &self.dir, e))?
        {
            self.end = offset.min(place.base);
            active.cut(&self.files, &self.dir, place.position, self.end)?;
        }
        self.start = self.start.min(self.end);
        self.recovery_point = self.recovery_point.min(self.end);
        self.cleaned_to = self.cleaned_to.min(self.end);
        let end = self.end;
        self.remove_snapshots(|at| at > end)?;
        Ok(out)
    }

    /// Makes closed segment number `at` the active one; those after it are set aside. The names are on disk before anything is cut, so that a power
    /// cut cannot bring a later segment back behind a shorter one.
    fn reopen(&mut self, at: usize, out: &mut SegmentFiles) -> Result<(), LogError> {
        let index = self.index_of(&self.closed[at])?;
        let last = self.active.take().map(|a| a.segment);
        let later = self.closed.split_off(at + 1);
        for segment in later.iter().chain(&last) {
            self.set_aside(segment, out)?;
        }
        self.files.storage().sync_dir(&self.dir).map_err(|e| LogError::io("sync", &self.dir, e))?;
        self.active = self.closed.pop_back().map(|segment| Active::new(segment, index));
        Ok(())
    }

    /// Drops everything and starts an empty log at `offset`.
    pub fn truncate_fully_and_start_at(&mut self, offset: Offset, now: Millis) -> Result<SegmentFiles, LogError> {
        self.usable()?;
        self.generation += 1;
        let mut out = SegmentFiles::default();
        let had = self.active.is_some();
        let last = self.active.take().map(|a| a.segment);
        for segment in std::mem::take(&mut self.closed).iter().chain(&last) {
            self.set_aside(segment, &mut out)?;
        }
        (self.start, self.end, self.recovery_point, self.cleaned_to) = (offset, offset, offset, offset);
        if had {
            self.names += 1;
            self.remove_snapshots(|_| true)?;
            self.materialise(now)?;
        }
        Ok(out)
    }
}
