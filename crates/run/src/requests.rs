//! Requests of the user, with the values of their placeholders from files and the environment of this process.

use std::io;
use std::path::Path;

use wirelab_model::mix::MixedRequest;
use wirelab_model::plan::{Job, Plan};
use wirelab_model::proxy::ProxyUrl;
use wirelab_model::request::WrittenRequest;
use wirelab_model::via::Credentials;
use wirelab_plan::own::{self, RequestError, Sources, Unreported};

use crate::error::RunError;

/// Asks a server for the descriptors of a service, with these header fields; see [`Sources::reflect`].
pub type Reflect<'a> = dyn Fn(&str, &[(String, String)]) -> Result<Option<Vec<u8>>, Unreported> + 'a;

/// Reflection where no server can be asked.
const fn nothing(_: &str, _: &[(String, String)]) -> Result<Option<Vec<u8>>, Unreported> {
    Ok(None)
}

struct Here<'a> {
    reflect: &'a Reflect<'a>,
}

impl Sources for Here<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn file(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }

    fn reflect(&self, service: &str, headers: &[(String, String)]) -> Result<Option<Vec<u8>>, Unreported> {
        (self.reflect)(service, headers)
    }
}

/// The requests to send. They may contain secrets: no file that a run keeps may contain them.
///
/// # Errors
/// If a value is missing, or a file cannot be used.
pub fn render(
    written: &[WrittenRequest],
    is_grpc: bool,
    reflect: &Reflect<'_>,
) -> Result<Vec<MixedRequest>, RequestError> {
    own::render(written, is_grpc, &Here { reflect })
}

/// User and password of a proxy. No file that a run keeps may contain them.
///
/// # Errors
/// If a value is missing.
pub fn credentials(proxy: &ProxyUrl) -> Result<Option<Credentials>, RequestError> {
    own::credentials(proxy, &Here { reflect: &nothing })
}

/// Rejects a plan whose requests or proxies lack a value, before anything is measured.
pub(crate) fn check(plan: &Plan) -> Result<(), RunError> {
    let mut checked: Vec<(&[WrittenRequest], bool)> = Vec::new();
    for cell in &plan.cells {
        if let Some(proxy) = cell.job.site().and_then(|site| site.proxy.as_ref()) {
            of_proxy(proxy)?;
        }
        let requests = (cell.job.own_requests(), cell.job.protocol.is_grpc());
        if !checked.contains(&requests) {
            of_cell(&cell.job)?;
            checked.push(requests);
        }
    }
    Ok(())
}

/// The requests of a cell.
pub(crate) fn of_cell(job: &Job) -> Result<Vec<MixedRequest>, RunError> {
    // The servers of a study are not there yet.
    render(job.own_requests(), job.protocol.is_grpc(), &nothing)
        .map_err(|error| RunError::Refused { why: format!("a request of the study: {error}") })
}

/// User and password of a cell's proxy.
pub(crate) fn of_proxy(proxy: &ProxyUrl) -> Result<Option<Credentials>, RunError> {
    credentials(proxy).map_err(|error| RunError::Refused { why: format!("`site_proxy` of the study: {error}") })
}

/// Leaves one of several clients its part of the data: clients take rows in turn.
pub(crate) fn divide(mix: &mut [MixedRequest], client: u32, clients: u32) {
    for request in mix {
        if request.variants.len() >= clients as usize {
            let mut row = 0..;
            request.variants.retain(|_| row.next().is_some_and(|row: u32| row % clients == client));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_divide_the_rows_among_themselves() {
        let written: Vec<_> =
            (0..5).map(|n| WrittenRequest { path: Some(format!("/{n}")), ..Default::default() }).collect();
        let rows: Vec<_> =
            render(&written, false, &|_, _| Ok(None)).unwrap().into_iter().flat_map(|one| one.variants).collect();
        let mix =
            MixedRequest { name: "a".to_owned(), weight: 1, variants: rows, expect: Default::default(), method: None };
        let paths = |client| {
            let mut mix = vec![mix.clone()];
            divide(&mut mix, client, 2);
            mix[0].variants.iter().map(|one| one.path.clone()).collect::<Vec<_>>()
        };
        assert_eq!((paths(0), paths(1)), (vec!["/0".into(), "/2".into(), "/4".into()], vec!["/1".into(), "/3".into()]));
    }
}
