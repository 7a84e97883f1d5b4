//! Set the host name.

use kk_connector::quote;
use kk_engine::{HostWork, Task, actions::Command};

use crate::model::inputs::Inputs;

/// Sets the name of each machine to the name in the file. This writes `/etc/hostname` and the kernel's name directly:
/// `hostnamectl` needs a running service that containers lack, and small systems have no command `hostname`.
pub(super) fn task(inputs: &Inputs) -> Task {
    let mut task = Task::new("set_hostname", "Set host name");
    if !inputs.spec.system.set_hostname {
        return task;
    }
    for (host, _) in inputs.hosts() {
        let name = host.name.clone();
        let action = Command::new(format!("set the host name to {}", host.name), script(&name))
            .when(move |facts| facts.hostname != name);
        task = task.on(&host.name, HostWork::new(vec![Box::new(action)]));
    }
    task
}

fn script(name: &str) -> String {
    let name = quote(name);
    format!(
        "printf '%s\\n' {name} >hostname\nkk_put hostname /etc/hostname 644 root:root\n\
         if command -v hostname >/dev/null; then hostname {name}; \
         else cat hostname >/proc/sys/kernel/hostname; fi\n"
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::script;
    use crate::testing;

    #[test]
    fn the_kernel_gets_the_name_also_without_the_program_hostname() {
        for (is_installed, file) in [(true, "said"), (false, "kernel/hostname")] {
            let directory = tempfile::tempdir().unwrap();
            let here = directory.path();
            fs::create_dir(here.join("kernel")).unwrap();
            // The test machine keeps its name.
            let stubs = format!(
                "kk_put() {{ :; }}\ncommand() {{ {is_installed}; }}\nhostname() {{ echo \"$1\" >said; }}\n"
            );
            let kernel = here.join("kernel").display().to_string();
            let text = stubs + &script("node1").replace("/proc/sys/kernel", &kernel);
            assert!(testing::run_script(here, &text).status.success());
            assert_eq!(fs::read_to_string(here.join(file)).unwrap(), "node1\n");
            assert!(!is_installed || !here.join("kernel/hostname").exists());
        }
    }
}
