//! Entries of `schedule`.

use super::fields::Fields;
use super::{MAIN_QUEUE, ScheduleBinding};
use crate::schedule::Crontab;

pub(super) fn read(fields: &Fields) -> Option<ScheduleBinding> {
    fields.only(&["name", "crontab", "allowFailure", "includeSnapshotsFrom", "queue", "group"]);
    let binding = read_v0(fields);
    let include_snapshots_from = fields.filled_strings("includeSnapshotsFrom");
    let queue = read_queue(fields);
    let group = read_group(fields);
    Some(ScheduleBinding { include_snapshots_from, queue, group, ..binding? })
}

/// The three keys that both versions have.
pub(super) fn read_v0(fields: &Fields) -> Option<ScheduleBinding> {
    let name = fields.string("name").unwrap_or("schedule").to_owned();
    let allow_failure = fields.boolean("allowFailure", false);
    let crontab = match Crontab::parse(fields.required("crontab")?) {
        Ok(crontab) => crontab,
        Err(error) => {
            fields.error("crontab", error.to_string());
            return None;
        }
    };
    Some(ScheduleBinding {
        name,
        crontab,
        allow_failure,
        include_snapshots_from: Vec::new(),
        queue: MAIN_QUEUE.to_owned(),
        group: None,
    })
}

/// `queue`, by default `main`.
pub(super) fn read_queue(fields: &Fields) -> String {
    fields.string("queue").filter(|queue| !queue.is_empty()).unwrap_or(MAIN_QUEUE).to_owned()
}

/// `group`; an empty text means no group.
pub(super) fn read_group(fields: &Fields) -> Option<String> {
    fields.string("group").filter(|group| !group.is_empty()).map(str::to_owned)
}
