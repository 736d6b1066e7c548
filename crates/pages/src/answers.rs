//! Pages of several hosts: the responses of each host.

use wirelab_model::page::{PageName, content_type};

use crate::contents;
use crate::corpus::{PageFile, files, spread};

/// Header field that permits pages of other hosts to read the protocol of a resource in their timeline.
pub const TIMING: (&str, &str) = ("timing-allow-origin", "*");

/// Response for one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Path with the query.
    pub path: String,
    pub status: u16,
    /// Header fields except `content-length`.
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// The responses of a generated page that is spread over hosts, by host.
#[must_use]
pub fn made(page: PageName, hosts: &[String]) -> Vec<Vec<Response>> {
    let files = files(page);
    let places = spread(&files, hosts.len());
    let path = |file: &PageFile| format!("/{page}/{}", file.name);
    let link = |file: &PageFile| {
        let host = files.iter().position(|one| one.name == file.name).map_or(0, |at| places[at]);
        // Links within the document's host are the same as on a page of one host.
        if host == 0 { file.name.clone() } else { format!("https://{}{}", hosts[host], path(file)) }
    };
    let mut answers: Vec<Vec<Response>> = vec![Vec::new(); hosts.len()];
    for ((file, place), body) in files.iter().zip(&places).zip(contents(page, &files, link)) {
        let kind = content_type(&file.name).map(|kind| ("content-type", kind));
        let fields = kind.into_iter().chain([TIMING]).map(|(name, value)| (name.to_owned(), value.to_owned()));
        answers[*place].push(Response { path: path(file), status: 200, fields: fields.collect(), body });
    }
    answers
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use wirelab_model::page::host_names;

    use super::*;

    #[test]
    fn every_file_is_on_one_host_with_its_size_and_the_document_links_to_it_there() {
        for (page, count) in [(PageName::Today, 4), (PageName::Small100, 20), (PageName::Small10, 2)] {
            let hosts = host_names(count);
            let answers = made(page, &hosts);
            let document = String::from_utf8(answers[0][0].body.clone()).unwrap();
            let mut seen = HashSet::new();
            for (number, host) in hosts.iter().enumerate() {
                for answer in &answers[number] {
                    let name = answer.path.rsplit('/').next().unwrap().to_owned();
                    let file = files(page).into_iter().find(|file| file.name == name).unwrap();
                    assert_eq!(answer.body.len() as u64, file.size, "{page} {name}");
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
