//! [`Address`]: a URL that is never shown with the user name and password in it.

use std::fmt;

use reqwest::Url;

use crate::Error;

/// An `http` or `https` URL. Displayed without user name and password, which a mirror's address may contain. Boxed, because most
/// errors contain an address.
#[derive(Clone, PartialEq, Eq)]
pub struct Address(Box<Url>);

impl Address {
    /// Parses the base address of a mirror.
    pub(crate) fn mirror(text: &str) -> Result<Self, Error> {
        let refuse = |reason: String| Error::InvalidMirror { reason };
        let url = Url::parse(text).map_err(|e| refuse(e.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refuse(format!("it begins with `{}:`, not with http: or https:", url.scheme())));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refuse("a `?` or `#` cannot be part of it".into()));
        }
        Ok(Self(Box::new(url)))
    }

    /// Parses an address of the built-in catalogue.
    pub(crate) fn upstream(text: &str) -> Self {
        Self(Box::new(Url::parse(text).expect("the addresses of the catalogue are checked by a test")))
    }

    /// Parses any address.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|error| error.to_string())?;
        Self::of(url)
    }

    /// Resolves a text against this address, which is a directory. A text that is a complete address is returned unchanged.
    pub(crate) fn below(&self, text: &str) -> Result<Self, String> {
        let mut base = self.url();
        base.set_path(&format!("{}/", base.path().trim_end_matches('/')));
        Self::of(base.join(text).map_err(|error| error.to_string())?)
    }

    fn of(url: Url) -> Result<Self, String> {
        match url.scheme() {
            "http" | "https" => Ok(Self(Box::new(url))),
            other => Err(format!("it begins with `{other}:`, not with http: or https:")),
        }
    }

    /// The address below the mirror that replaces this one: with mirror `M`, `https://host/path` becomes `M/host/path`.
    pub(crate) fn behind(&self, mirror: &Self) -> Self {
        let mut url = mirror.0.clone();
        let base = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{base}/{}{}", self.0.host_str().unwrap_or_default(), self.0.path()));
        Self(url)
    }

    /// The address of the file with the same name plus `suffix`.
    pub(crate) fn beside(&self, suffix: &str) -> Self {
        let mut url = self.0.clone();
        url.set_path(&format!("{}{suffix}", self.0.path()));
        Self(url)
    }

    /// Whether a download from there cannot be changed in transit.
    pub fn is_tls(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Name and port of the server.
    pub fn host(&self) -> String {
        host(&self.0)
    }

    /// The part after the last `/`.
    pub(crate) fn file_name(&self) -> &str {
        self.0.path().rsplit('/').next().unwrap_or_default()
    }

    /// With user name and password, so for the client only.
    pub(crate) fn url(&self) -> Url {
        (*self.0).clone()
    }
}

/// Name and port of a server.
pub(crate) fn host(url: &Url) -> String {
    let name = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{name}:{port}"),
        None => name.to_owned(),
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.0.scheme(), self.host(), self.0.path())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewrites_to_the_mirror() {
        let upstream = Address::upstream("https://dl.k8s.io/release/v1.36.0/bin/linux/amd64/kubeadm");
        for (mirror, expected) in [
            ("https://m.example", "https://m.example/dl.k8s.io/release/v1.36.0/bin/linux/amd64/kubeadm"),
            ("http://m:8080/a/b/", "http://m:8080/a/b/dl.k8s.io/release/v1.36.0/bin/linux/amd64/kubeadm"),
        ] {
            let mirror = Address::mirror(mirror).unwrap();
            assert_eq!(upstream.behind(&mirror).to_string(), expected);
        }
    }

    #[test]
    fn refuses_what_is_no_mirror() {
        for text in
            ["", "mirror.example", "ftp://m.example", "https://", "https://m.example/?a=b", "file:///srv"]
        {
            assert!(Address::mirror(text).is_err(), "{text}");
        }
    }

    #[test]
    fn never_shows_a_password() {
        let address = Address::mirror("https://user:sentinel@m.example/x").unwrap();
        assert_eq!(format!("{address} {address:?}"), "https://m.example/x Address(https://m.example/x)");
        assert_eq!(address.url().password(), Some("sentinel"));
    }
}
