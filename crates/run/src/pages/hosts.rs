//! Pages of several hosts: a folder with all responses for each host.

use std::fs;
use std::path::{Path, PathBuf};

use wirelab_model::page::{Answer, PageName, content_type};
use wirelab_plan::corpus::{PageFile, files, spread};

use crate::error::RunError;
use crate::pages::contents;

/// File name of a host's answer list.
const LIST: &str = "answers.json";

/// Header field that permits pages of other hosts to read the protocol of a resource in their timeline.
pub const TIMING: (&str, &str) = ("timing-allow-origin", "*");

/// Response for one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Path with the query.
    pub path: String,
    /// The status.
    pub status: u16,
    /// Header fields except `content-length`.
    pub fields: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// Path of the answer list of a host, by number, of the page in this folder.
#[must_use]
pub fn list(folder: &Path, host: usize) -> PathBuf {
    folder.join(host.to_string()).join(LIST)
}

/// Writes a generated page into the new folder `folder`, spread over hosts.
///
/// # Errors
/// If a file cannot be written.
pub fn write_made(folder: &Path, page: PageName, hosts: &[String]) -> Result<(), RunError> {
    let files = files(page);
    let places = spread(&files, hosts.len());
    let path = |file: &PageFile| format!("/{page}/{}", file.name);
    let link = |file: &PageFile| {
        let host = files.iter().position(|one| one.name == file.name).map_or(0, |at| places[at]);
        // Links within the document's host are the same as on a page of one host.
        if host == 0 { file.name.clone() } else { format!("https://{}{}", hosts[host], path(file)) }
    };
    let mut answers: Vec<Vec<Content>> = vec![Vec::new(); hosts.len()];
    for ((file, place), body) in files.iter().zip(&places).zip(contents(page, &files, link)) {
        let kind = content_type(&file.name).map(|kind| ("content-type", kind));
        let fields = kind.into_iter().chain([TIMING]).map(|(name, value)| (name.to_owned(), value.to_owned()));
        answers[*place].push(Content { path: path(file), status: 200, fields: fields.collect(), body });
    }
    write(folder, &answers)
}

/// Writes the responses of each host into the new folder `folder`.
///
/// # Errors
/// If a file cannot be written.
pub fn write(folder: &Path, hosts: &[Vec<Content>]) -> Result<(), RunError> {
    fs::create_dir(folder).map_err(RunError::io("cannot make the folder", folder))?;
    for (number, answers) in hosts.iter().enumerate() {
        let list = list(folder, number);
        let own = list.parent().unwrap_or(folder);
        fs::create_dir(own).map_err(RunError::io("cannot make the folder", own))?;
        let mut written = Vec::with_capacity(answers.len());
        for (number, Content { path, status, fields, body }) in answers.iter().enumerate() {
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
    use std::collections::HashSet;

    use wirelab_model::page::host_names;

    use super::*;

    #[test]
    fn every_file_is_on_one_host_with_its_size_and_the_document_links_to_it_there() {
        let place = tempfile::tempdir().unwrap();
        for (page, count) in [(PageName::Today, 4), (PageName::Small100, 20), (PageName::Small10, 2)] {
            let (folder, hosts) = (place.path().join(page.token()), host_names(count));
            write_made(&folder, page, &hosts).unwrap();
            let read = |host: usize| -> Vec<Answer> {
                serde_json::from_slice(&fs::read(list(&folder, host)).unwrap()).unwrap()
            };
            let body = |host: usize, answer: &Answer| {
                fs::read(list(&folder, host).with_file_name(answer.body.as_deref().unwrap())).unwrap()
            };
            let document = String::from_utf8(body(0, &read(0)[0])).unwrap();
            let mut seen = HashSet::new();
            for (number, host) in hosts.iter().enumerate() {
                for answer in read(number) {
                    let name = answer.path.rsplit('/').next().unwrap().to_owned();
                    let file = files(page).into_iter().find(|file| file.name == name).unwrap();
                    assert_eq!(body(number, &answer).len() as u64, file.size, "{page} {name}");
                    assert_eq!(answer.fields[0].1, content_type(&name).unwrap());
                    assert_eq!(answer.fields[1].0, TIMING.0);
                    let link = format!("https://{host}/{page}/{name}");
                    assert_eq!(document.contains(&link), number > 0, "{link}");
                    assert!(seen.insert(name));
                }
            }
            assert_eq!(seen.len(), files(page).len(), "{page}");
        }
    }
}
