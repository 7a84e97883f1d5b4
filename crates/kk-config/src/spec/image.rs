//! [`ImageName`]: a container image by its full name.

use std::fmt;
use std::str::FromStr;

/// A container image by its full name: `registry/path[:tag][@sha256:digits]`, with a tag, a digest or both.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageName {
    /// `host[:port]`.
    pub registry: String,
    /// Such as `coredns/coredns`.
    pub path: String,
    /// Such as `v1.14.2`.
    pub tag: Option<String>,
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: Option<String>,
}

impl ImageName {
    /// Name without tag and digest.
    pub fn repository(&self) -> String {
        format!("{}/{}", self.registry, self.path)
    }
}

impl FromStr for ImageName {
    type Err = &'static str;

    /// The grammar is the distribution project's (reference/reference.go), except for names that leave the registry or the tag to
    /// a default.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (text, None),
        };
        if digest.is_some_and(|digest| !is_digest(digest)) {
            return Err("a digest is `sha256:` and 64 hexadecimal digits");
        }
        let (registry, rest) = name
            .split_once('/')
            .filter(|(registry, _)| is_registry(registry))
            .ok_or("write it with its registry, such as docker.io/library/nginx:1.27")?;
        let (path, tag) = match rest.split_once(':') {
            Some((path, tag)) => (path, Some(tag)),
            None => (rest, None),
        };
        if !path.split('/').all(is_path_part) {
            return Err("its path may hold small letters, digits, `-`, `_`, `.` and `/`");
        }
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err("a tag is at most 128 letters, digits, `-`, `_` and `.`");
        }
        if tag.is_none() && digest.is_none() {
            return Err("add a tag or a digest: the meaning of `latest` changes over time");
        }
        let owned = |text: &str| text.to_owned();
        Ok(Self {
            registry: owned(registry),
            path: owned(path),
            tag: tag.map(owned),
            digest: digest.map(owned),
        })
    }
}

impl fmt::Display for ImageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.path)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

fn is_registry(text: &str) -> bool {
    let host = text.split(':').next().unwrap_or_default();
    let fits = |c: u8| c.is_ascii_alphanumeric() || b".-".contains(&c);
    let port = text.split_once(':').map(|(_, port)| port.parse::<u16>().is_ok());
    (text.contains(['.', ':']) || text == "localhost")
        && !host.is_empty()
        && host.bytes().all(fits)
        && port.unwrap_or(true)
}

fn is_path_part(text: &str) -> bool {
    let fits = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || b"-_.".contains(&c);
    text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit()) && text.bytes().all(fits)
}

fn is_tag(text: &str) -> bool {
    let fits = |c: u8| c.is_ascii_alphanumeric() || b"-_.".contains(&c);
    (1..=128).contains(&text.len()) && !text.starts_with(['-', '.']) && text.bytes().all(fits)
}

fn is_digest(text: &str) -> bool {
    let digit = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    text.strip_prefix("sha256:").is_some_and(|digits| digits.len() == 64 && digits.bytes().all(digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_name_is_read_and_written_alike() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        for text in [
            "registry.k8s.io/pause:3.10".to_owned(),
            "docker.io/flannel/flannel-cni-plugin:v1.7.1-flannel1".into(),
            "hub.local:5000/a/b/c:x".into(),
            format!("localhost/a@{digest}"),
            format!("quay.io/a/b:v1@{digest}"),
        ] {
            assert_eq!(text.parse::<ImageName>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_leaves_something_to_a_default_or_is_no_name_is_refused() {
        for text in [
            "",
            "nginx",
            "library/nginx:1",
            "docker.io/nginx",
            "docker.io/:1",
            "docker.io/Nginx:1",
            "docker.io/../etc:1",
            "docker.io/a//b:1",
            "docker.io/a:",
            "docker.io/a:-x",
            "docker.io/a:x/y",
            "docker.io/a@sha256:12",
            "docker.io/a:1@md5:0",
            "a.b:port/a:1",
        ] {
            assert!(text.parse::<ImageName>().is_err(), "{text}");
        }
    }
}
