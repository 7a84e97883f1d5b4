//! Active firewalls of a host, and the packets that they let pass.

use kk_config::Host;
use kk_engine::{Facts, ProbeSpec, Question};

use crate::{
    base::{
        findings::Findings,
        host_layout::KUBELET_CONF,
        requirements::{Port, Protocol},
    },
    model::inputs::Inputs,
};

/// Lines `firewall NAME`, `open PORT[-PORT]/PROTOCOL` and `trusts SOURCE`, for each active firewall.
pub(crate) const ACTIVE: Question<Vec<Firewall>> =
    Question::new("firewalls", include_str!("firewall.sh"), parse);

/// An active firewall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Firewall {
    name: String,
    /// First port, last port, protocol.
    open: Vec<(u16, u16, Protocol)>,
    /// Whether it has rules for whole networks or interfaces, which only its administrator can judge.
    trusts: bool,
}

pub(super) fn asks(probe: &mut ProbeSpec) {
    probe.ask(&ACTIVE);
    probe.units.extend(["nm-cloud-setup.service", "nm-cloud-setup.timer"].map(str::to_owned));
}

fn parse(printed: &str) -> Option<Vec<Firewall>> {
    let mut found: Vec<Firewall> = Vec::new();
    for (word, rest) in printed.lines().filter_map(|line| line.split_once(' ')) {
        if word == "firewall" {
            found.push(Firewall { name: rest.to_owned(), open: Vec::new(), trusts: false });
            continue;
        }
        let firewall = found.last_mut()?;
        match word {
            "open" => firewall.open.extend(range(rest)),
            "trusts" => firewall.trusts = true,
            _ => {}
        }
    }
    Some(found)
}

/// `6443/tcp`, `2379-2380/tcp`.
fn range(text: &str) -> Option<(u16, u16, Protocol)> {
    let (ports, protocol) = text.trim().split_once('/')?;
    let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
    let protocol = if protocol == "udp" { Protocol::Udp } else { Protocol::Tcp };
    Some((first.parse().ok()?, last.parse().ok()?, protocol))
}

impl Firewall {
    fn lets(&self, port: Port) -> bool {
        let inside = |(first, last, protocol): &(u16, u16, Protocol)| {
            (*first..=*last).contains(&port.number) && *protocol == port.protocol
        };
        self.open.iter().any(inside)
    }
}

pub(super) fn findings(inputs: &Inputs, host: &Host, facts: &Facts, found: &mut Findings) {
    cloud_setup(host, facts, found);
    let system = &inputs.spec.system;
    for firewall in facts.answer(&ACTIVE).answered().unwrap_or_default() {
        let name = &firewall.name;
        if system.disable_firewall && !system.skip_configure_os {
            found.adapted(
                host,
                format!("{name} is active"),
                "kk stops it; kk delete cluster starts it \
                                         again",
            );
            continue;
        }
        let networks =
            format!("{} and {}", inputs.spec.network.pod_subnet(), inputs.spec.network.service_subnet());
        let closed: Vec<String> = inputs
            .requirements
            .ports(host)
            .iter()
            .filter(|port| !firewall.lets(**port))
            .map(|port| format!("{}/{}", port.number, port.protocol.name()))
            .collect();
        // A working node proves that its firewall lets the traffic of the cluster pass.
        if closed.is_empty() || firewall.trusts || facts.files.contains_key(KUBELET_CONF) {
            found.warning(
                host,
                format!("{name} is active"),
                format!(
                    "it must allow traffic between the hosts, and traffic of {networks}; or set \
                         spec.system.disableFirewall"
                ),
            );
        } else {
            found.error(
                host,
                format!("{name} is active and closes {}", closed.join(", ")),
                format!(
                    "set spec.system.disableFirewall; or open these ports between the hosts, and allow \
                         traffic of {networks}"
                ),
            );
        }
    }
}

/// The rules of nm-cloud-setup send the traffic of pods to the wrong routing table, again after each change of the network.
fn cloud_setup(host: &Host, facts: &Facts, found: &mut Findings) {
    let runs = |unit: &str| facts.units.get(unit).is_some_and(|unit| unit.enabled || unit.active);
    if runs("nm-cloud-setup.service") || runs("nm-cloud-setup.timer") {
        found.warning(
            host,
            "nm-cloud-setup is enabled: its routing rules break the network of pods",
            "systemctl disable --now nm-cloud-setup.timer nm-cloud-setup.service, then reboot the host",
        );
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::testing;

    /// The answer on a host with these programs.
    fn asked(programs: &[(&str, &str)]) -> Vec<Firewall> {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in programs {
            testing::program(directory.path(), name, text);
        }
        let path = format!("{}:/usr/bin:/bin", directory.path().display());
        let output =
            Command::new("sh").args(["-c", include_str!("firewall.sh")]).env("PATH", path).output().unwrap();
        assert!(output.status.success());
        parse(&String::from_utf8(output.stdout).unwrap()).unwrap()
    }

    const FIREWALLD: &str = r#"case "$*" in
        --state) echo running ;;
        --list-ports) echo 2379-2380/tcp 8472/udp ;;
        --list-services) echo ssh kube-api ;;
        *--service=kube-api*) echo 6443/tcp ;;
        *--service=ssh*) echo 22/tcp ;;
        "--zone=trusted --list-sources") echo $TRUSTED ;;
        esac"#;

    #[test]
    fn firewalld_says_its_ports_and_those_of_its_services() {
        let found = asked(&[("firewall-cmd", FIREWALLD), ("ufw", "echo Status: inactive")]);
        assert_eq!(found.len(), 1);
        assert!(!found[0].trusts);
        for (port, open) in [
            (Port::tcp(6443, ""), true),
            (Port::tcp(2380, ""), true),
            (Port::udp(8472, ""), true),
            (Port::tcp(8472, ""), false),
            (Port::tcp(10250, ""), false),
        ] {
            assert_eq!(found[0].lets(port), open, "{port:?}");
        }
        let trusting = FIREWALLD.replace("$TRUSTED", "10.0.0.0/8");
        assert!(asked(&[("firewall-cmd", &trusting), ("ufw", "exit 1")])[0].trusts);
        assert_eq!(asked(&[("firewall-cmd", "echo not running; exit 252"), ("ufw", "exit 1")]), []);
    }

    #[test]
    fn ufw_counts_only_when_it_is_enabled() {
        let status = "Status: active\n\nTo                         Action      From\n\
                      --                         ------      ----\n6443/tcp                   ALLOW       Anywhere\n\
                      10250                      ALLOW       Anywhere\n2379:2380/tcp              ALLOW       10.0.0.0/24\n\
                      22/tcp                     DENY        Anywhere\n";
        let ufw = |rest: &str| format!("cat <<'END'\n{status}{rest}END");
        let found = asked(&[("firewall-cmd", "exit 1"), ("ufw", &ufw(""))]);
        assert_eq!((found[0].name.as_str(), found[0].trusts), ("ufw", false));
        for (port, open) in [(6443, true), (10250, true), (2380, true), (22, false)] {
            assert_eq!(found[0].lets(Port::tcp(port, "")), open, "{port}");
        }
        let trusting = ufw("Anywhere                   ALLOW       10.0.0.0/8\n");
        assert!(asked(&[("firewall-cmd", "exit 1"), ("ufw", &trusting)])[0].trusts);
    }
}
