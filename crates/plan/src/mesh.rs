//! Compatibility of the setting `mesh` with other settings.

use wirelab_model::network::{Address, Network};
use wirelab_model::protocol::Protocol;
use wirelab_model::settings::Settings;

use crate::error::StudyError;

/// Name of the sidecar endpoint, or `None` if the setting is absent.
///
/// # Errors
/// If another setting contradicts it; the message says what to change.
pub(crate) fn mesh(settings: &Settings, protocol: Protocol) -> Result<Option<String>, StudyError> {
    let Some(mesh) = &settings.mesh else { return Ok(None) };
    if !matches!(protocol, Protocol::H1c | Protocol::H2c | Protocol::Grpcc) {
        return Err(StudyError::new(format!(
            "`mesh` is `{mesh}`, but sidecars can handle requests of h1c, h2c and grpcc only, not {protocol}; change \
             `protocol`, or remove `mesh`"
        )));
    }
    if settings.network != Some(Network::Overlay) {
        return Err(StudyError::new(format!(
            "`mesh` is `{mesh}`, which needs pods; set `network = \"overlay\"` as well"
        )));
    }
    if settings.server_lacks.is_some() {
        return Err(StudyError::new(format!(
            "`server_lacks` is set beside `mesh` ({mesh}), but clients connect to their sidecar; remove one"
        )));
    }
    match settings.address {
        None | Some(Address::Service) => Ok(Some(mesh.clone())),
        Some(_) => Err(StudyError::new(format!(
            "`address` is set beside `mesh` ({mesh}), but clients connect to their sidecar, which stands for the \
             service; remove one"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use wirelab_model::plan::{Job, Reach};

    use crate::error::StudyError;

    fn of(toml: &str) -> Result<Job, StudyError> {
        crate::job(&toml::from_str(toml).unwrap())
    }

    #[test]
    fn sidecars_stand_for_the_service_of_one_server_too() {
        for servers in ["far", "2 far"] {
            let toml = format!(
                "protocol = 'grpcc'\nmesh = 'proxy'\nnetwork = 'overlay'\nplacement = 'lan'\nservers = '{servers}'"
            );
            let job = of(&toml).unwrap();
            assert_eq!(job.servers().unwrap().reach, Reach::Mesh("proxy".to_owned()));
        }
        assert!(!of("protocol = 'h3'").unwrap().has_mesh());
    }

    #[test]
    fn settings_that_contradict_sidecars_are_refused_with_the_remedy() {
        let lan = "mesh = 'proxy'\nplacement = 'lan'";
        for (toml, words) in [
            (format!("protocol = 'h2'\n{lan}\nnetwork = 'overlay'"), "h1c, h2c and grpcc only, not h2"),
            (format!("protocol = 'tcp'\n{lan}\nnetwork = 'overlay'"), "not tcp"),
            (format!("protocol = 'h2c'\n{lan}"), "`network = \"overlay\"`"),
            (format!("protocol = 'h2c'\n{lan}\nnetwork = 'overlay'\naddress = 'headless'"), "`address` is set"),
            (format!("protocol = 'h2c'\n{lan}\nnetwork = 'overlay'\nserver_lacks = 'h2'"), "`server_lacks` is set"),
            ("protocol = 'h2c'\nsite = 'http://example.org'\nmesh = 'proxy'".to_owned(), "`mesh` is set"),
        ] {
            let why = of(&toml).unwrap_err().to_string();
            assert!(why.contains(words), "{toml}: {why}");
        }
    }
}
