//! The setting `site`: parses the URL of a remote page.

use url::{Host, Url};
use wirelab_model::protocol::Protocol;
use wirelab_model::settings::{Part, Settings};
use wirelab_model::site::Site;

use crate::error::StudyError;

/// The remote page, or `None` if wirelab starts a server.
///
/// # Errors
/// If the URL does not fit the protocol, or if a setting configures servers that wirelab starts.
pub(crate) fn site(settings: &Settings, protocol: Protocol) -> Result<Option<Site>, StudyError> {
    let Some(text) = &settings.site else {
        return match settings.first_that_needs(Part::Site) {
            Some(key) => {
                Err(StudyError::new(format!("`{key}` is set, but it needs `site`; set `site` as well, or remove it")))
            }
            None => Ok(None),
        };
    };
    if let Some(key) = settings.first_excluded_by(Part::Site) {
        return Err(StudyError::new(format!(
            "`{key}` is set, but the server of `site` ({text}) is not started here; remove one of them"
        )));
    }
    let mut site = parse(text)?;
    let secure = site.url.starts_with("https:");
    if !(protocol.is_http() || protocol.is_grpc()) || protocol.is_secure() != secure {
        let possible = if secure { "`h1`, `h2`, `h3` or `grpc`" } else { "`h1c`, `h2c` or `grpcc`" };
        return Err(StudyError::new(format!(
            "{text} cannot be requested over `{protocol}`; set `protocol` to {possible}"
        )));
    }
    site.address = settings.site_address;
    site.trust_anchor = settings.site_trust.clone();
    Ok(Some(site))
}

/// Parses a URL.
///
/// # Errors
/// If the URL cannot be requested; the message says what was expected.
fn parse(text: &str) -> Result<Site, StudyError> {
    let wrong = |why: &str| {
        StudyError::new(format!("`{text}` is not a URL that can be requested: {why}; example: https://example.org/"))
    };
    let url = Url::parse(text).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("its scheme is neither http nor https"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("it has a user name or a password, which would not be sent"));
    }
    let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
        return Err(wrong("it names no host"));
    };
    let host = match host {
        Host::Domain(name) => name.to_owned(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => address.to_string(),
    };
    let path = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    Ok(Site { host, port, path, url: url.to_string(), address: None, trust_anchor: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(toml: &str, protocol: Protocol) -> Result<Option<Site>, StudyError> {
        site(&toml::from_str(toml).unwrap(), protocol)
    }

    #[test]
    fn a_url_is_taken_apart() {
        let site = of("site = 'https://Example.org:8443/a/b?c=d#e'\nsite_address = '10.0.0.1'", Protocol::H3);
        let site = site.unwrap().unwrap();
        assert_eq!((site.host.as_str(), site.port, site.path.as_str()), ("example.org", 8443, "/a/b?c=d"));
        assert_eq!(site.address, Some([10, 0, 0, 1].into()));
        let plain = of("site = 'http://[::1]'", Protocol::H1c).unwrap().unwrap();
        assert_eq!((plain.host.as_str(), plain.port, plain.path.as_str()), ("::1", 80, "/"));
        assert_eq!(of("payload = '1 KiB'", Protocol::Quic), Ok(None));
    }

    #[test]
    fn unusable_urls_are_refused_with_the_remedy() {
        for (toml, protocol, words) in [
            ("site = 'example.org'", Protocol::H2, "example: https://example.org/"),
            ("site = 'ftp://example.org'", Protocol::H2, "neither http nor https"),
            ("site = 'https://me@example.org'", Protocol::H2, "user name"),
            ("site = 'https://example.org'", Protocol::H2c, "`h1`, `h2`, `h3` or `grpc`"),
            ("site = 'http://example.org'", Protocol::H2, "`h1c`, `h2c` or `grpcc`"),
            ("site = 'https://example.org'", Protocol::Quic, "`h1`, `h2`, `h3` or `grpc`"),
            ("site = 'https://example.org'\nserver = 'builtin'", Protocol::H2, "`server` is set"),
            ("site = 'https://example.org'\nplacement = 'lan'", Protocol::H2, "`placement` is set"),
            ("site = 'https://example.org'\npayload = '1 KiB'", Protocol::H2, "`payload` is set"),
            ("site = 'https://example.org'\nexchange = 'echo'", Protocol::H2, "`exchange` is set"),
            ("site_trust = 'ca.pem'", Protocol::H2, "needs `site`"),
        ] {
            let why = of(toml, protocol).unwrap_err().to_string();
            assert!(why.contains(words), "{toml}: {why}");
        }
    }
}
