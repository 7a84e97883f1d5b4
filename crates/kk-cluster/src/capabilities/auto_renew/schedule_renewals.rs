//! Schedule renewals of certificates.

use kk_engine::{
    Action, HostWork, Task,
    actions::{File, Unit, any_needed},
};
use serde_json::json;

use super::{PROGRAM, SERVICE, TIMER, program};
use crate::{
    base::{error::BuildError, slots},
    model::inputs::Inputs,
};

/// Minutes between the renewals of two control planes.
const BETWEEN: usize = 20;

/// Installs the timer on every control plane that is in the cluster. The control planes renew one after the other.
pub(super) fn task(inputs: &Inputs) -> Result<Task, BuildError> {
    let mut task = Task::new("schedule_renewals", "Schedule renewals of certificates");
    for (host, facts) in inputs.control_planes() {
        let position = inputs.spec.control_planes().iter().position(|one| one.name == host.name);
        let values = json!({"script": PROGRAM, "calendar": calendar(position.unwrap_or(0), program::seconds_left(inputs))});
        let render = |name: &str| inputs.templates.render(&format!("control-plane/{name}"), &values);
        let mut actions: Vec<Box<dyn Action>> = vec![
            Box::new(File::text(PROGRAM, program::text(inputs, host)).mode(0o700)),
            Box::new(File::text(SERVICE, render("k8s-certs-renew.service")?)),
            Box::new(File::text(TIMER, render("k8s-certs-renew.timer")?)),
        ];
        // A running service does not delay the change, because it continues with the script that it has started.
        let changes = any_needed(&actions[1..], facts);
        actions.push(Box::new(
            Unit::running("k8s-certs-renew.timer").force_restart(changes).restart_after([TIMER.to_owned()]),
        ));
        task = task.on(&host.name, HostWork::new(actions).needs(slots::joined_slot(&host.name)));
    }
    Ok(task)
}

/// Renewals run at night, at KubeKey's hour. Certificates that are valid for a few days are checked every hour.
fn calendar(position: usize, seconds_left: u64) -> String {
    let minutes = position * BETWEEN;
    if seconds_left < 2 * 24 * 60 * 60 {
        format!("*-*-* *:{:02}:00", minutes % 60)
    } else {
        format!("*-*-* {:02}:{:02}:00", (3 + minutes / 60) % 24, minutes % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::calendar;

    #[test]
    fn no_two_of_many_control_planes_begin_at_one_time() {
        let year = 30 * 24 * 3600;
        let times: Vec<String> = (0..9).map(|position| calendar(position, year)).collect();
        assert_eq!(times[0], "*-*-* 03:00:00");
        assert_eq!(times[4], "*-*-* 04:20:00");
        let distinct: std::collections::BTreeSet<_> = times.iter().collect();
        assert_eq!(distinct.len(), times.len());
        assert_eq!(calendar(1, 3 * 3600), "*-*-* *:20:00", "a day would be too late");
    }
}
