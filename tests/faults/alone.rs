//! The load and the comparison for a service of one process, without a cluster.

use crate::checker::{Verdict, check_held, check_shown};
use crate::mix::{CALLERS, Mix};
use crate::record::Record;
use crate::rig::Rig;

impl Mix {
    /// Begins every conversation, and starts the callers.
    pub async fn begin(rig: &Rig) -> Self {
        Self::begin_with(&rig.api(), &rig.company, rig.door.subscribe(), CALLERS).await
    }

    /// Ends the load on a healthy service.
    pub async fn end(self, rig: &Rig) -> Record {
        rig.door.send_modify(|door| door.over = true);
        self.end_with(&rig.api()).await
    }
}

/// Compares the record with what the service shows, stops it, and compares with what its tables have.
pub async fn check(record: &Record, rig: &mut Rig) -> Verdict {
    let shown = check_shown(record, &rig.api()).await;
    rig.stop();
    let company = rig.company.id.0;
    rig.database(async |db| check_held(record, shown, db, company).await).await
}
