//! Files of `/etc/kubernetes/pki` that are sent from one control plane to another, through the memory of the control machine.
//!
//! The control plane that supplies them may be compromised. Therefore each file is sent by its name and must be PEM of the
//! expected kind: an archive that is unpacked as root on another host could contain anything.

use kk_config::Secret;
use kk_connector::Payload;
use x509_parser::pem::Pem;

use crate::base::encoding::{base64, from_base64};

/// A CA with its intermediates is far smaller.
const LARGEST: usize = 64 << 10;

/// The files, by their names.
#[derive(Clone)]
pub(crate) struct SharedFiles(Vec<(&'static str, Secret)>);

/// The script that prints files of `/etc/kubernetes/pki` for [`SharedFiles::parse`]. It fails unless it can print all of them.
pub(crate) fn print(names: &[&str]) -> String {
    let names = names.join(" ");
    format!(
        "for name in {names}; do [ -s \"/etc/kubernetes/pki/$name\" ] || {{ echo \"/etc/kubernetes/pki has no $name\" >&2; exit 1; }}; done\n\
         for name in {names}; do text=$(base64 <\"/etc/kubernetes/pki/$name\" | tr -d '\\n') && [ -n \"$text\" ] || exit 1; echo \"$name $text\"; done\n"
    )
}

impl SharedFiles {
    /// Reads what [`print`] has printed.
    ///
    /// # Errors
    /// Another file, another order than in `names`, or a file whose content does not match its name.
    pub(crate) fn parse(names: &[&'static str], printed: &str) -> Result<Self, String> {
        let mut lines = printed.lines();
        let mut files = Vec::new();
        for name in names {
            let text = lines.next().and_then(|line| line.strip_prefix(name)?.strip_prefix(' '));
            let content = text.and_then(from_base64).ok_or_else(|| format!("{name} is missing"))?;
            check(name, &content).map_err(|problem| format!("{name} {problem}"))?;
            let content = String::from_utf8(content).map_err(|_| format!("{name} is not text"))?;
            files.push((*name, Secret::new(content)));
        }
        if lines.next().is_some() {
            return Err("there is more than was asked for".to_owned());
        }
        Ok(Self(files))
    }

    /// A file in Base64, as a file for a script.
    pub(crate) fn payload(&self, name: &str) -> Option<Payload> {
        let (_, content) = self.0.iter().find(|(known, _)| *known == name)?;
        let content = base64(content.expose().as_bytes()).into_bytes().into();
        Some(Payload { name: format!("pki.{name}"), content })
    }

    /// All names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|(name, _)| *name)
    }
}

/// The mode that kubeadm sets for a file of this name.
pub(crate) fn mode(name: &str) -> &'static str {
    let is_certificate = name.rsplit_once('.').is_some_and(|(_, kind)| kind == "crt");
    if is_certificate { "644" } else { "600" }
}

fn check(name: &str, content: &[u8]) -> Result<(), &'static str> {
    if content.len() > LARGEST {
        return Err("is too large");
    }
    let kind = name.rsplit_once('.').map_or("", |(_, kind)| kind);
    let mut found = 0;
    for block in Pem::iter_from_buffer(content) {
        let block = block.map_err(|_| "is not PEM")?;
        found += match (kind, block.label.as_str()) {
            ("crt", "CERTIFICATE") => {
                block.parse_x509().map_err(|_| "holds a certificate that cannot be read")?;
                1
            }
            ("key", "PRIVATE KEY" | "RSA PRIVATE KEY" | "EC PRIVATE KEY")
            | ("pub", "PUBLIC KEY" | "RSA PUBLIC KEY") => 1,
            // OpenSSL writes these parameters before a key.
            ("key", "EC PARAMETERS") => 0,
            _ => return Err("holds something else than its name says"),
        };
    }
    match (found, kind) {
        (0, _) => Err("holds no certificate and no key"),
        (1, _) | (_, "crt") => Ok(()),
        _ => Err("holds more than one key"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use super::*;
    use crate::testing;

    /// A PEM text of the kind that this name requires.
    pub(crate) fn pem(name: &str) -> String {
        let kind = match name.rsplit_once('.') {
            Some((_, "crt")) => return testing::certificate(365, 100),
            Some((_, "key")) => "PRIVATE",
            _ => "PUBLIC",
        };
        let body = base64(name.as_bytes());
        format!("-----BEGIN {kind} KEY-----\n{body}\n-----END {kind} KEY-----\n")
    }

    /// The output of a control plane that has these files.
    pub(crate) fn printed(names: &[&str]) -> String {
        let line = |name: &&str| format!("{name} {}", base64(pem(name).as_bytes()));
        names.iter().map(line).collect::<Vec<_>>().join("\n") + "\n"
    }

    #[test]
    fn files_arrive_as_they_are_and_a_part_of_them_is_no_answer() {
        let names = ["ca.crt", "ca.key", "sa.pub"];
        let directory = tempfile::tempdir().unwrap();
        let here = directory.path().display().to_string();
        let text = print(&names).replace("/etc/kubernetes/pki", &here);
        let run = || {
            let output = testing::run_script(directory.path(), &text);
            let said = |bytes| String::from_utf8(bytes).unwrap();
            (output.status.success(), said(output.stdout), said(output.stderr))
        };
        for name in names {
            fs::write(directory.path().join(name), pem(name)).unwrap();
        }
        // Some implementations accept no options, and break lines.
        testing::program(directory.path(), "base64", "[ $# -eq 0 ] && exec /usr/bin/base64");
        let (ok, printed, _) = run();
        let Ok(files) = SharedFiles::parse(&names, &printed) else { panic!("{printed}") };
        let key = files.payload("ca.key").unwrap();
        assert!(
            ok && key.name == "pki.ca.key" && *key.content == *base64(pem("ca.key").as_bytes()).as_bytes()
        );
        fs::remove_file(directory.path().join("ca.key")).unwrap();
        assert_eq!(run(), (false, String::new(), format!("{here} has no ca.key\n")));
    }

    #[test]
    fn what_a_host_was_not_asked_for_reaches_no_other_host() {
        let (certificate, key) = (pem("ca.crt"), pem("ca.key"));
        let line = |name: &str, content: &str| format!("{name} {}\n", base64(content.as_bytes()));
        let names = ["ca.crt", "ca.key"];
        let both = line("ca.crt", &certificate) + &line("ca.key", &key);
        for (case, printed, why) in [
            ("nothing", String::new(), "ca.crt is missing"),
            ("a part", line("ca.crt", &certificate), "ca.key is missing"),
            (
                "another name",
                line("../../cron.d/x", &certificate) + &line("ca.key", &key),
                "ca.crt is missing",
            ),
            ("another order", line("ca.key", &key) + &line("ca.crt", &certificate), "ca.crt is missing"),
            ("more", both.clone() + &line("apiserver.key", &key), "more than was asked for"),
            ("no PEM", line("ca.crt", "* * * * * root sh\n") + &line("ca.key", &key), "holds no certificate"),
            ("a key as certificate", line("ca.crt", &key) + &line("ca.key", &key), "something else"),
            ("two keys", line("ca.crt", &certificate) + &line("ca.key", &key.repeat(2)), "more than one key"),
            ("too large", line("ca.crt", &certificate.repeat(200)) + &line("ca.key", &key), "too large"),
            ("no Base64", format!("ca.crt ?\n{}", line("ca.key", &key)), "ca.crt is missing"),
        ] {
            let problem = SharedFiles::parse(&names, &printed).map(|_| ()).unwrap_err();
            assert!(problem.contains(why), "{case}: {problem}");
        }
        assert!(SharedFiles::parse(&names, &both).is_ok());
    }
}
