//! Files for trials: certificate authorities, a certificate, documents.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use wirelab_model::page::CONTENT_TYPES;
use wirelab_model::pattern;

use crate::set_up_error::SetUpError;

/// The name in the certificate.
pub const SERVER_NAME: &str = "server.wirelab.test";

/// Sizes of the documents, in bytes: nothing, one segment, more than one TLS record, more than a flow-control window.
pub const DOCUMENTS: [usize; 4] = [0, 1_000, 20_000, 300_007];

/// The size of the files of a page, in bytes.
pub const PAGE_FILE: usize = 500;

/// Files that all cases share.
#[derive(Debug)]
pub struct Material {
    /// The authority that signed the certificate.
    pub authority: PathBuf,
    /// Another authority, which did not sign it.
    pub stranger: PathBuf,
    /// The server's certificate.
    pub certificate: PathBuf,
    /// The key of the certificate.
    pub key: PathBuf,
    /// The folder with the documents, named `<bytes>.bin`, and the files of a page, named `page.<ending>`.
    pub documents: PathBuf,
}

impl Material {
    /// Creates the files below a folder.
    pub fn make(folder: &Path) -> Result<Self, SetUpError> {
        Self::try_make(folder).map_err(|error| {
            SetUpError::new(format!("creating certificates and documents in {}", folder.display()), error)
        })
    }

    fn try_make(folder: &Path) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let documents = folder.join("documents");
        fs::create_dir_all(&documents)?;
        for size in DOCUMENTS {
            fs::write(documents.join(format!("{size}.bin")), pattern::body(size))?;
        }
        for (ending, _) in CONTENT_TYPES {
            fs::write(documents.join(format!("page.{ending}")), pattern::body(PAGE_FILE))?;
        }
        let file = |name: &str, text: String| -> std::io::Result<PathBuf> {
            let path = folder.join(name);
            fs::write(&path, text).map(|()| path)
        };
        let (authority_pem, issuer) = authority("wirelab contract suite")?;
        let (stranger_pem, _) = authority("a stranger to the contract suite")?;
        let key = KeyPair::generate()?;
        let mut leaf = CertificateParams::new([SERVER_NAME.to_owned()])?;
        leaf.use_authority_key_identifier_extension = true;
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = leaf.signed_by(&key, &issuer)?;
        Ok(Self {
            authority: file("authority.pem", authority_pem)?,
            stranger: file("stranger.pem", stranger_pem)?,
            certificate: file("leaf.pem", certificate.pem())?,
            key: file("leaf.key", key.serialize_pem())?,
            documents,
        })
    }
}

fn authority(name: &str) -> Result<(String, Issuer<'static, KeyPair>), rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = params.self_signed(&key)?;
    Ok((certificate.pem(), Issuer::new(params, key)))
}
