//! Requests of the user in the job of a cell.

use wirelab_model::plan::{BUILTIN, ENGINE, Job, Target, Work};
use wirelab_model::request::WrittenRequest;
use wirelab_model::settings::Settings;

use crate::error::StudyError;

/// The paths that every endpoint's server answers.
const SERVED: [&str; 3] = ["/bytes/", "/delay/", "/echo"];

/// Gives a job the requests of the study.
///
/// # Errors
/// If the cell cannot send them; the message says what to change.
pub(crate) fn with_requests(mut job: Job, settings: &Settings, requests: &[WrittenRequest]) -> Result<Job, StudyError> {
    let is_own_server = job.servers().is_some_and(|servers| servers.command.is_some());
    let is_grpc = job.protocol.is_grpc();
    if requests.is_empty() && is_grpc && (is_own_server || job.site().is_some()) {
        return Err(StudyError::new(
            "calls of gRPC need a `request`; write a table [request] with `path = \"/package.Service/Method\"`, a `body` \
             in JSON and `protoset`, the descriptors of the service",
        ));
    }
    if job.own_client.is_some() && !requests.is_empty() {
        return Err(StudyError::new(
            "`client_command` is set, and your program makes its own requests; remove the `request`, and write what it \
             sends in the words of the command",
        ));
    }
    if requests.is_empty() && is_own_server {
        job.work = Work::Own(vec![WrittenRequest::default()]);
        return Ok(job);
    }
    if requests.is_empty() {
        return Ok(job);
    }
    if !job.protocol.is_http() && !is_grpc {
        return Err(StudyError::new(format!(
            "`request` describes HTTP requests or calls of gRPC, which {} does not carry; set `protocol` to h1, h1c, h2, \
             h2c, h3, grpc or grpcc",
            job.protocol
        )));
    }
    if is_grpc {
        job.client = caller(settings)?;
    }
    let other = [
        ("page", settings.page.is_some()),
        ("exchange", settings.exchange.is_some()),
        ("payload", settings.payload.is_some()),
        ("delay", settings.delay.is_some()),
    ];
    if let Some((key, _)) = other.into_iter().find(|(_, is_set)| *is_set) {
        let message = format!("`{key}` is set, but the study has its own `request`; remove one of them");
        return Err(StudyError::new(message));
    }
    let mut requests = requests.to_vec();
    for request in &mut requests {
        match &job.target {
            Target::Site(site) => {
                request.path.get_or_insert_with(|| site.path.clone());
            }
            Target::Servers(_) if is_own_server => {}
            Target::Servers(_) if !is_grpc && SERVED.iter().any(|path| request.path().starts_with(path)) => {}
            Target::Servers(_) => {
                return Err(StudyError::new(format!(
                    "the path `{}` is none that endpoints serve (/bytes/SIZE, /delay/MICROSECONDS, /echo); set `site` to \
                     the URL of your own service, or `server_command` to start it",
                    request.path()
                )));
            }
        }
    }
    job.work = Work::Own(requests);
    Ok(job)
}

/// The client that makes calls of the user: by default the load engine, because the built-in client has none.
fn caller(settings: &Settings) -> Result<String, StudyError> {
    match settings.client.as_deref() {
        Some(BUILTIN) => Err(StudyError::new(format!(
            "`client` is `{BUILTIN}`, which makes no gRPC calls of your own; set it to `{ENGINE}`, or remove it"
        ))),
        Some(other) => Ok(other.to_owned()),
        None => Ok(ENGINE.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(requests: &str, workload: &str) -> Result<Vec<Job>, StudyError> {
        let text = format!(
            "name = \"mine\"\ntitle = \"t\"\nquestion = \"q\"\n{requests}\n[workload]\n{workload}\n[factors]\nprotocol = \
             [\"h1\", \"h2\"]\n[compare]\nfactor = \"protocol\"\nbaseline = \"h1\"\n"
        );
        let study = crate::parse(&text, "mine.toml")?;
        Ok(crate::plan(&study)?.0.cells.into_iter().map(|cell| cell.job).collect())
    }

    #[test]
    fn every_cell_sends_the_requests_of_the_study() {
        let site = "site = \"https://localhost:8443/api?x=1\"";
        let one = plan("[request]\nbody = \"{}\"", site).unwrap();
        for job in &one {
            let [request] = job.own_requests() else { panic!("{job:?}") };
            assert_eq!((request.method(), request.path()), ("POST", "/api?x=1"));
        }
        let two = plan("[[request]]\npath = \"/a\"\nweight = 3\n[[request]]\npath = \"/b\"", site).unwrap();
        assert_eq!(two[0].own_requests().iter().map(WrittenRequest::weight).collect::<Vec<_>>(), [3, 1]);
        let job: Job = serde_json::from_str(&serde_json::to_string(&two[0]).unwrap()).unwrap();
        assert_eq!(job, two[0]);
        assert_eq!(plan("[request]\npath = \"/bytes/10\"", "").unwrap()[0].own_requests().len(), 1);
    }

    #[test]
    fn the_load_engine_makes_calls_of_grpc() {
        let of = |workload: &str, request: &str| {
            let text = format!(
                "name = \"mine\"\ntitle = \"t\"\nquestion = \"q\"\n{request}\n[workload]\nprotocol = \"grpcc\"\n\
                 {workload}\n[factors]\nworkers = [1, 2]\n[compare]\nfactor = \"workers\"\nbaseline = \"1\"\n"
            );
            let study = crate::parse(&text, "mine.toml")?;
            Ok::<_, crate::error::StudyError>(crate::plan(&study)?.0.cells.remove(0).job)
        };
        let (site, call) = ("site = \"http://localhost:50051/\"", "[request]\npath = \"/shop.Cart/Put\"");
        let job = of(site, call).unwrap();
        assert_eq!((job.client.as_str(), job.own_requests()[0].path()), ("engine", "/shop.Cart/Put"));
        assert_eq!(of(&format!("{site}\nclient = \"mine\""), call).unwrap().client, "mine");
        for (workload, request, words) in [
            (&format!("{site}\nclient = \"builtin\"")[..], call, "set it to `engine`"),
            (site, "", "calls of gRPC need a `request`"),
            ("", call, "set `site`"),
        ] {
            let why = of(workload, request).unwrap_err().to_string();
            assert!(why.contains(words), "{workload}: {why}");
        }
    }

    #[test]
    fn requests_that_a_cell_cannot_send_are_refused() {
        let site = "site = \"https://localhost:8443/\"";
        for (requests, workload, words) in [
            ("[request]\npth = \"/a\"", site, "mine.toml:5:1"),
            ("[request]\nmethod = \"get\"", site, "did you mean `GET`"),
            ("[[request]]\npath = \"/a\"\n[[request]]\npath = \"b\"", site, "mine.toml:7:8"),
            ("[request]\npath = \"/a\"", "", "/bytes/SIZE"),
            ("[request]\npath = \"/echo\"", "payload = \"1 KiB\"", "`payload` is set"),
            ("[request]\npath = \"/echo\"", "exchange = \"echo\"", "`exchange` is set"),
        ] {
            let why = plan(requests, workload).unwrap_err().to_string();
            assert!(why.contains(words), "{requests}: {why}");
        }
    }
}
