//! The setting `site`: parses the URL of a remote page.

use url::{Host, Url};
use wirelab_model::protocol::Protocol;
use wirelab_model::settings::{Part, Settings};
use wirelab_model::site::Site;
use wirelab_model::via::unfit_for_socket;

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
    site.unix_socket = settings.site_unix_socket.clone();
    site.proxy = settings.site_proxy.clone();
    way(settings, protocol)?;
    Ok(Some(site))
}

/// Checks the way to the server, if it is not direct.
///
/// # Errors
/// If the protocol or another setting contradicts it.
fn way(settings: &Settings, protocol: Protocol) -> Result<(), StudyError> {
    let Settings { site_unix_socket, site_proxy, .. } = settings;
    let (key, what) = match (site_unix_socket, site_proxy) {
        (None, None) => return Ok(()),
        (Some(_), Some(_)) => {
            return Err(StudyError::new("`site_unix_socket` and `site_proxy` are set; a client uses one of them"));
        }
        (Some(_), None) => ("site_unix_socket", "a Unix socket"),
        (None, Some(_)) => ("site_proxy", "the tunnel of a proxy"),
    };
    if protocol.uses_udp() {
        return Err(StudyError::new(format!(
            "`{key}` is set, but `{protocol}` uses UDP, which {what} does not carry; set `protocol` to h1 or h2"
        )));
    }
    if let Some(proxy) = site_proxy.as_ref().filter(|proxy| !proxy.hides_password()) {
        return Err(StudyError::new(format!(
            "`site_proxy` ({}) has a password, which files of the run would show; write {{{{env.PROXY_PASSWORD}}}} in its \
             place and set that variable",
            proxy.shown()
        )));
    }
    let Some(path) = site_unix_socket else { return Ok(()) };
    if let Some(why) = unfit_for_socket(path) {
        return Err(StudyError::new(format!("`site_unix_socket` is {why}")));
    }
    let of_tcp = [
        ("site_address", settings.site_address.is_some()),
        ("congestion", settings.congestion.is_some()),
        ("no_delay", settings.no_delay.is_some()),
        ("fast_open", settings.fast_open.is_some()),
    ];
    match of_tcp.into_iter().find(|(_, is_set)| *is_set) {
        None => Ok(()),
        Some((key, _)) => Err(StudyError::new(format!(
            "`{key}` is set, but a Unix socket (`site_unix_socket`) has no TCP; remove one"
        ))),
    }
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
    Ok(Site {
        host,
        port,
        path,
        url: url.to_string(),
        address: None,
        trust_anchor: None,
        unix_socket: None,
        proxy: None,
    })
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
            ("site_proxy = 'http://gate:1'", Protocol::H2, "needs `site`"),
            ("site = 'https://a'\nsite_proxy = 'http://gate:1'", Protocol::H3, "uses UDP"),
            ("site = 'https://a'\nsite_unix_socket = 'a.sock'", Protocol::H3, "set `protocol` to h1 or h2"),
            ("site = 'https://a'\nsite_unix_socket = 'a'\nsite_proxy = 'http://gate:1'", Protocol::H2, "one of them"),
            ("site = 'https://a'\nsite_unix_socket = 'a'\nno_delay = false", Protocol::H2, "`no_delay` is set"),
            ("site = 'https://a'\nsite_unix_socket = ''", Protocol::H2, "empty"),
            ("site = 'https://a'\nsite_proxy = 'http://me:s3cr3t@gate:1'", Protocol::H2, "{{env.PROXY_PASSWORD}}"),
        ] {
            let why = of(toml, protocol).unwrap_err().to_string();
            assert!(why.contains(words) && !why.contains("s3cr3t"), "{toml}: {why}");
        }
        let long = format!("site = 'https://a'\nsite_unix_socket = '{}'", "a".repeat(108));
        let why = of(&long, Protocol::H2).unwrap_err().to_string();
        assert!(why.contains("108 bytes; Linux allows 107"), "{why}");
    }

    #[test]
    fn a_unix_socket_has_no_settings_of_tcp() {
        let text = "protocol = 'h2'\nsite = 'https://a'\nsite_unix_socket = 'a'";
        let job = crate::job::job(&toml::from_str(text).unwrap()).unwrap();
        assert_eq!((job.transport.congestion, job.transport.no_delay), (None, None));
        assert!(job.transport.stream_window.is_some());
    }
}
