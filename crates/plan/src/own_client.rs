//! The program of the user as the client of a cell.

use regex::Regex;
use wirelab_model::own_client::{ClientOutput, OwnClient};
use wirelab_model::protocol::Protocol;
use wirelab_model::settings::Settings;
use wirelab_model::totals::{Printed, nanoseconds_of};

use crate::error::StudyError;

/// The program, if the cell has one.
///
/// # Errors
/// If its command line or a pattern is wrong, or another setting contradicts it; the message says what to change.
pub(crate) fn own_client(settings: &Settings, protocol: Protocol) -> Result<Option<OwnClient>, StudyError> {
    let output = settings.client_output.clone().unwrap_or_default();
    let Some(words) = settings.client_command.clone() else {
        return match output.is_empty() {
            true => Ok(None),
            false => Err(StudyError::new("`client_output` is set without `client_command`, whose output it describes")),
        };
    };
    let refuse = |why: String| Err(StudyError::new(format!("`client_command` {why}")));
    if words.first().is_none_or(String::is_empty) {
        return refuse("has no word; write `[\"oha\", \"-n\", \"{requests}\", \"{url}\"]`".to_owned());
    }
    if !protocol.is_http() && !protocol.is_grpc() {
        return refuse(format!(
            "is for HTTP and gRPC, and {protocol} is neither; set `protocol` to h1, h1c, h2, h2c, h3, grpc or grpcc"
        ));
    }
    let has = |placeholder| words.iter().any(|word| word.contains(placeholder));
    if !has("{url}") && !has("{port}") {
        return refuse(
            "does not say where the server is; write {url}, or {address} and {port}, in its words".to_owned(),
        );
    }
    if settings.duration.is_some() && !(has("{seconds}") && output.has(Printed::Requests)) {
        return refuse(
            "ends after `duration` only if {seconds} is in its words, and its number of requests is known only if \
             `client_output` has `requests`; set both, or use `requests` in place of `duration`"
                .to_owned(),
        );
    }
    if settings.duration.is_none() && !has("{requests}") {
        return refuse("does not say how many requests to send; write {requests} in its words".to_owned());
    }
    let other = [
        ("client", settings.client.is_some()),
        ("client_threads", settings.client_threads.is_some()),
        ("rate", settings.rate.is_some()),
        ("pause", settings.pause.is_some()),
        ("recording", settings.recording.is_some()),
        ("resumption", settings.resumption.is_some()),
        ("mesh", settings.mesh.is_some()),
        ("control_plane", settings.control_plane.is_some()),
        ("resolve_again", settings.resolve_again.is_some()),
        ("clients", settings.clients() > 1),
    ];
    if let Some((key, _)) = other.into_iter().find(|(_, is_set)| *is_set) {
        return Err(StudyError::new(format!(
            "`{key}` is set, but your program (`client_command`) does not know it; remove one of them"
        )));
    }
    patterns(&output)?;
    Ok(Some(OwnClient { words, output }))
}

/// Checks that each pattern has one group, whose name, if it has one, is a unit.
fn patterns(output: &ClientOutput) -> Result<(), StudyError> {
    for pattern in output.0.values() {
        let refuse = |why: String| Err(StudyError::new(format!("`client_output` has the pattern `{pattern}`, {why}")));
        let regex = match Regex::new(pattern) {
            Ok(regex) => regex,
            Err(error) => return refuse(format!("which is no regular expression: {error}")),
        };
        let groups = regex.captures_len() - 1;
        if groups != 1 {
            return refuse(format!("which has {groups} groups; write one pair of parentheses around the value"));
        }
        if let Some(name) = regex.capture_names().flatten().find(|name| nanoseconds_of(name).is_none()) {
            return refuse(format!("whose group `{name}` is no unit; name it ns, us, ms or s"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use wirelab_model::spec::{Extent, Recording};

    use crate::job::job;

    #[track_caller]
    fn refused(toml: &str, words: &[&str]) {
        let error = job(&toml::from_str(toml).unwrap()).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }

    #[test]
    fn a_program_is_the_client_and_records_totals() {
        let text = "protocol = 'h1c'\nrequests = 500\nclient_command = ['oha', '-n', '{requests}', '{url}']\n\
                    client_output = { response_median = '50%: ([0-9.]+ms)' }";
        let job = job(&toml::from_str(text).unwrap()).unwrap();
        assert_eq!((job.client.as_str(), job.load.recording), ("oha -n {requests} {url}", Recording::Totals));
        assert_eq!((job.load.extent, job.own_client.unwrap().words.len()), (Extent::Requests(500), 4));
    }

    #[test]
    fn what_a_program_cannot_be_told_is_refused_with_the_remedy() {
        let of = |words: &str, more: &str| format!("protocol = 'h1c'\nclient_command = {words}\n{more}");
        let good = "['oha', '-n', '{requests}', '{url}']";
        refused(&of("[]", ""), &["has no word"]);
        refused(&of("['oha', '-n', '{requests}']", ""), &["where the server is", "{url}"]);
        refused(&of("['oha', '{url}']", ""), &["how many requests", "{requests}"]);
        refused(&of("['oha', '-z', '{seconds}', '{url}']", "duration = '1 s'"), &["`client_output` has `requests`"]);
        refused(&of(good, "client = 'engine'"), &["`client` is set", "remove one of them"]);
        refused(&of(good, "clients = 2"), &["`clients` is set"]);
        refused(&of(good, "client_output = { requests = '(' }"), &["no regular expression"]);
        refused(&of(good, "client_output = { requests = 'x' }"), &["0 groups"]);
        refused(&of(good, "client_output = { response_p99 = '(?<min>.)' }"), &["`min` is no unit"]);
        refused("protocol = 'h1c'\nclient_output = { requests = '(.)' }", &["without `client_command`"]);
        refused(&of(good, "").replace("h1c", "tcp"), &["HTTP and gRPC"]);
    }
}
