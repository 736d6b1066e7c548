//! Pages of several hosts: a folder with all responses for each host.

use std::fs;
use std::path::{Path, PathBuf};

use wirelab_model::page::Answer;
use wirelab_pages::answers::Response;

use crate::error::RunError;

/// File name of a host's answer list.
const LIST: &str = "answers.json";

/// Path of the answer list of a host, by number, of the page in this folder.
#[must_use]
pub fn list(folder: &Path, host: usize) -> PathBuf {
    folder.join(host.to_string()).join(LIST)
}

/// Writes the responses of each host into the new folder `folder`.
///
/// # Errors
/// If a file cannot be written.
pub fn write(folder: &Path, hosts: &[Vec<Response>]) -> Result<(), RunError> {
    fs::create_dir(folder).map_err(RunError::io("cannot make the folder", folder))?;
    for (number, answers) in hosts.iter().enumerate() {
        let list = list(folder, number);
        let own = list.parent().unwrap_or(folder);
        fs::create_dir(own).map_err(RunError::io("cannot make the folder", own))?;
        let mut written = Vec::with_capacity(answers.len());
        for (number, Response { path, status, fields, body }) in answers.iter().enumerate() {
            let name = format!("{number:06}");
            let is_there = !body.is_empty();
            if is_there {
                let file = own.join(&name);
                fs::write(&file, body).map_err(RunError::io("cannot write the page's file", &file))?;
            }
            let (path, fields) = (path.clone(), fields.clone());
            written.push(Answer { path, status: *status, fields, body: is_there.then_some(name) });
        }
        let text = serde_json::to_vec(&written)
            .map_err(|error| RunError::Refused { why: format!("answers cannot be written as JSON: {error}") })?;
        fs::write(&list, text).map_err(RunError::io("cannot write the answers", &list))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_a_list_of_its_responses_with_the_files_of_their_bodies() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("hosts0");
        let response = |path: &str, status, body: &[u8]| Response {
            path: path.to_owned(),
            status,
            fields: vec![("content-type".to_owned(), "text/css".to_owned())],
            body: body.to_vec(),
        };
        let hosts = [vec![response("/", 200, b"a"), response("/moved", 301, b"")], vec![response("/b?c", 404, b"bb")]];
        write(&folder, &hosts).unwrap();
        for (number, responses) in hosts.iter().enumerate() {
            let list = list(&folder, number);
            let answers: Vec<Answer> = serde_json::from_slice(&fs::read(&list).unwrap()).unwrap();
            assert_eq!(answers.len(), responses.len());
            for (answer, response) in answers.iter().zip(responses) {
                assert_eq!((&answer.path, answer.status), (&response.path, response.status));
                assert_eq!(answer.fields, response.fields);
                let body = answer.body.as_ref().map(|name| fs::read(list.with_file_name(name)).unwrap());
                assert_eq!(body.unwrap_or_default(), response.body);
                assert_eq!(answer.body.is_none(), response.body.is_empty(), "an empty body needs no file");
            }
        }
    }
}
