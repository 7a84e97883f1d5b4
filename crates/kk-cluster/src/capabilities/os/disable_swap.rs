//! Turn swap off, now and at boot.

use kk_connector::quote;
use kk_engine::{
    Action, Facts, HostWork, ProbeSpec, Question, Task, actions::Command, actions::SwapOff, question,
};

use crate::model::inputs::Inputs;

/// Active swap units that are started at boot independently of /etc/fstab: from a zram generator, from a partition table, or from
/// a unit file. A unit that only mirrors active swap has no file.
pub(crate) const UNITS: Question<Vec<String>> =
    Question::new("swap_units", include_str!("swap_units.sh"), question::lines);

pub(super) fn asks(probe: &mut ProbeSpec) {
    probe.ask(&UNITS);
}

/// The kubelet does not start while swap is on. A mask is a link, so the record can revert it.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("disable_swap", "Turn swap off");
    for (host, facts) in inputs.nodes() {
        let masks = facts.answer(&UNITS).answered().unwrap_or_default().into_iter().map(|unit| mask(&unit));
        let actions = masks.chain([Box::new(SwapOff) as Box<dyn Action>]).collect();
        task = task.on(&host.name, HostWork::new(actions));
    }
    task
}

fn mask(unit: &str) -> Box<dyn Action> {
    let path = quote(&format!("/etc/systemd/system/{unit}")).into_owned();
    let script = format!("kk_link /dev/null {path}\nsystemctl daemon-reload\n");
    Box::new(Command::new(format!("mask {unit}"), script))
}

/// Active swap devices, and the units that would enable swap again.
pub(super) fn on(facts: &Facts) -> Vec<String> {
    let units = facts.answer(&UNITS).answered().unwrap_or_default();
    facts.swaps.iter().cloned().chain(units).collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use crate::testing;

    #[test]
    fn units_that_come_back_are_those_with_a_file_and_not_of_fstab() {
        let shown = "Id=dev-zram0.swap\nLoadState=loaded\nActiveState=active\nFragmentPath=/run/systemd/generator/dev-zram0.swap\nSourcePath=\n\n\
            SourcePath=/etc/fstab\nId=dev-sda2.swap\nLoadState=loaded\nActiveState=active\nFragmentPath=/run/systemd/generator/dev-sda2.swap\n\n\
            Id=dev-disk-by\\\\x2duuid-1.swap\nLoadState=loaded\nActiveState=active\nFragmentPath=\nSourcePath=\n\n\
            Id=masked.swap\nLoadState=masked\nActiveState=active\nFragmentPath=/dev/null\nSourcePath=\n\n\
            Id=off.swap\nLoadState=loaded\nActiveState=inactive\nFragmentPath=/etc/systemd/system/off.swap\nSourcePath=\n\n\
            Id=srv-swap.swap\nLoadState=loaded\nActiveState=active\nFragmentPath=/etc/systemd/system/srv-swap.swap\nSourcePath=\n";
        let directory = tempfile::tempdir().unwrap();
        testing::program(directory.path(), "systemctl", &format!("cat <<'END'\n{shown}END"));
        let path = format!("{}:/usr/bin:/bin", directory.path().display());
        let output = Command::new("sh")
            .args(["-ec", include_str!("swap_units.sh")])
            .env("PATH", path)
            .output()
            .unwrap();
        assert!(output.status.success());
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "dev-zram0.swap\nsrv-swap.swap\n");
    }
}
