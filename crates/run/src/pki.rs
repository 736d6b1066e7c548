//! A private certificate authority for one session of a run, and the server certificates that it signs.
//!
//! Created whenever a run starts or resumes, so no secret outlives the session. ECDSA on P-256, as on most of the
//! web.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use jiff::{Timestamp, ToSpan, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType, date_time_ymd,
};
use wirelab_model::network::SERVER_NAME;

use crate::error::RunError;

/// Key and certificate files of server and clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pki {
    /// Certificate chain of the server, PEM: the leaf alone, because clients trust its issuer.
    pub certificate: PathBuf,
    /// Private key of the server, PKCS #8 PEM, readable by the owner only.
    pub key: PathBuf,
    /// Certificate of the authority, PEM.
    pub trust_anchor: PathBuf,
    /// Size of the chain in DER, as in a full handshake.
    pub chain_bytes: usize,
    /// Certificate and key of each further host, by name.
    hosts: HashMap<String, (PathBuf, PathBuf)>,
}

impl Pki {
    /// Creates the authority and certificates below `folder`: one for [`SERVER_NAME`] and the given addresses, and
    /// one for each further host of a page. Separate certificates keep browsers from reusing connections across hosts
    /// (RFC 9113, section 9.1.1).
    ///
    /// # Errors
    /// If the certificates cannot be created or written.
    pub fn create<'a>(
        folder: &Path,
        addresses: &[IpAddr],
        hosts: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, RunError> {
        let refused =
            |error: rcgen::Error| RunError::Refused { why: format!("cannot make the run's certificates: {error}") };
        let authority = authority().map_err(refused)?;
        let (leaf, key) = issue(&authority, SERVER_NAME, addresses).map_err(refused)?;
        let mut pki = Self {
            certificate: folder.join("server.pem"),
            key: folder.join("server.key"),
            trust_anchor: folder.join("authority.pem"),
            chain_bytes: leaf.der().len(),
            hosts: HashMap::new(),
        };
        write_private(&pki.key, key.serialize_pem().as_bytes())?;
        write_private(&pki.certificate, leaf.pem().as_bytes())?;
        write_private(&pki.trust_anchor, authority.pem().as_bytes())?;
        for host in hosts {
            if host == SERVER_NAME || pki.hosts.contains_key(host) {
                continue;
            }
            let (leaf, key) = issue(&authority, host, &[]).map_err(refused)?;
            let [certificate, private] =
                ["pem", "key"].map(|ending| folder.join(format!("host{}.{ending}", pki.hosts.len())));
            write_private(&private, key.serialize_pem().as_bytes())?;
            write_private(&certificate, leaf.pem().as_bytes())?;
            pki.hosts.insert(host.to_owned(), (certificate, private));
        }
        Ok(pki)
    }

    /// Certificate and key of a host; default: the server's.
    #[must_use]
    pub fn of(&self, host: &str) -> (&Path, &Path) {
        match self.hosts.get(host) {
            Some((certificate, key)) => (certificate, key),
            None => (&self.certificate, &self.key),
        }
    }
}

fn authority() -> Result<CertifiedIssuer<'static, KeyPair>, rcgen::Error> {
    let mut params = params("wirelab run authority")?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    CertifiedIssuer::self_signed(params, KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?)
}

/// A certificate for a name and addresses, with its key.
fn issue(
    authority: &CertifiedIssuer<'static, KeyPair>,
    name: &str,
    addresses: &[IpAddr],
) -> Result<(rcgen::Certificate, KeyPair), rcgen::Error> {
    // The common name is limited to 64 characters, which host names may exceed; browsers read only the alternative
    // names.
    let mut params = params(SERVER_NAME)?;
    params.subject_alt_names = vec![SanType::DnsName(name.try_into()?)];
    for address in addresses {
        let name = SanType::IpAddress(*address);
        if !params.subject_alt_names.contains(&name) {
            params.subject_alt_names.push(name);
        }
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let leaf = params.signed_by(&key, authority)?;
    Ok((leaf, key))
}

/// Common properties of all certificates. Valid from yesterday, because clocks differ, for 30 days, longer than any
/// session.
fn params(name: &str) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let day = |date: jiff::civil::Date| {
        date_time_ymd(date.year().into(), date.month().unsigned_abs(), date.day().unsigned_abs())
    };
    params.not_before = day(today.saturating_sub(1.day()));
    params.not_after = day(today.saturating_add(30.days()));
    Ok(params)
}

/// Writes a file that only its owner can read, from its creation on.
fn write_private(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).and_then(|mut file| file.write_all(bytes)).map_err(RunError::io("cannot write", path))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_files_are_pem_and_the_key_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let localhost: IpAddr = "127.0.0.1".parse().unwrap();
        let hosts = [SERVER_NAME, "a.test", "b.test", "a.test"];
        let pki = Pki::create(folder.path(), &[localhost, localhost], hosts).unwrap();
        assert_eq!(
            (pki.of(SERVER_NAME), pki.of("c.test")),
            ((&*pki.certificate, &*pki.key), (&*pki.certificate, &*pki.key))
        );
        let own = ["a.test", "b.test"].map(|host| fs::read_to_string(pki.of(host).0).unwrap());
        assert!(own[0] != own[1] && own.iter().all(|text| text.starts_with("-----BEGIN CERTIFICATE-----")));
        assert!(pki.of("a.test").1.exists());
        assert!(fs::read_to_string(&pki.certificate).unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
        assert!(fs::read_to_string(&pki.trust_anchor).unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
        let key = fs::read_to_string(&pki.key).unwrap();
        KeyPair::from_pem(&key).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&pki.key).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert!((300..2000).contains(&pki.chain_bytes), "{} bytes", pki.chain_bytes);
    }
}
