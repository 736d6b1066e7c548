//! Compatibility of the setting `page` with other settings.

use wirelab_model::network::Network;
use wirelab_model::page::{PageName, host_names};
use wirelab_model::protocol::Protocol;
use wirelab_model::settings::{Part, Settings};
use wirelab_pages::corpus;

use crate::error::StudyError;

/// The page, or `None` if clients request single documents.
///
/// # Errors
/// If browsers lack the protocol, if no client is set, or if a setting contradicts what browsers decide themselves.
pub(crate) fn page(settings: &Settings, protocol: Protocol) -> Result<Option<PageName>, StudyError> {
    let Some(page) = settings.page else {
        return match settings.first_that_needs(Part::Page) {
            Some(key) => Err(StudyError::new(format!(
                "`{key}` is set, which only a `page` has; set `page` as well, or remove it"
            ))),
            None => Ok(None),
        };
    };
    if !matches!(protocol, Protocol::H1 | Protocol::H2 | Protocol::H3) {
        return Err(StudyError::new(format!(
            "browsers load `page` ({page}) by h1, h2 or h3 over TLS, not by {protocol}"
        )));
    }
    if settings.client.is_none() && settings.endpoint.is_none() {
        return Err(StudyError::new(format!(
            "`page` ({page}) needs a browser: set `client` to `chromium` or `firefox`"
        )));
    }
    if !page.is_made() && settings.early_hints == Some(true) {
        let what = kind(page);
        return Err(StudyError::new(format!(
            "`early_hints` needs a page that wirelab generates, but `{page}` is {what}; remove one"
        )));
    }
    match settings.first_excluded_by(Part::Page) {
        Some(key) => Err(StudyError::new(format!(
            "`{key}` is set beside `page` ({page}), but browsers decide it themselves; remove one"
        ))),
        None => Ok(Some(page)),
    }
}

/// Noun for a page that wirelab does not generate.
const fn kind(page: PageName) -> &'static str {
    if matches!(page, PageName::Archive(_)) { "an archive" } else { "a folder" }
}

/// Host names of the page, the document's host first. Empty for one host, and for archives, whose hosts are read
/// later.
///
/// # Errors
/// If the page has too few files for these hosts, or another setting rules several hosts out.
pub(crate) fn spread(settings: &Settings, page: PageName) -> Result<Vec<String>, StudyError> {
    if matches!(page, PageName::Archive(_)) {
        refuse_several_hosts(settings, page)?;
        return match settings.hosts {
            None => Ok(Vec::new()),
            Some(_) => Err(StudyError::new(format!(
                "`hosts` is set, and `{page}` is an archive, which has hosts of its own; remove `hosts`"
            ))),
        };
    }
    let Some(count @ 2..) = settings.hosts else { return Ok(Vec::new()) };
    if !page.is_made() {
        return Err(StudyError::new(format!(
            "`hosts` is {count}, but `{page}` is a folder, which has one host; remove `hosts`, or save the page as an \
             archive"
        )));
    }
    let hosts = corpus::spread(&corpus::files(page), count as usize);
    let most = hosts.iter().max().map_or(1, |last| last + 1);
    if most < count as usize {
        return Err(StudyError::new(format!(
            "`hosts` is {count}, but `{page}` has files for {most} hosts only; use fewer"
        )));
    }
    refuse_several_hosts(settings, page)?;
    Ok(host_names(count))
}

/// Rejects settings that pages of several hosts do not support.
fn refuse_several_hosts(settings: &Settings, page: PageName) -> Result<(), StudyError> {
    let what = format!("the page (`{page}`) has several hosts");
    if settings.network == Some(Network::Overlay) {
        return Err(StudyError::new(format!(
            "{what}, but `network` is `overlay`, which serves pages of one host only; set it to `direct`, in the lab \
             `netns`"
        )));
    }
    if settings.early_hints == Some(true) {
        return Err(StudyError::new(format!(
            "{what}, but `early_hints` needs a page with one host; remove one of them"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use wirelab_model::plan::{Job, LoadedPage, Work};
    use wirelab_model::spec::{Extent, Recording};
    use wirelab_model::units::{Size, Span};

    use super::*;

    fn job(toml: &str) -> Result<Job, StudyError> {
        crate::job(&toml::from_str(toml).unwrap())
    }

    #[test]
    fn a_page_is_loaded_once_and_recorded_as_loads() {
        let job = job("page = 'small-10'\nprotocol = 'h3'\nclient = 'firefox'").unwrap();
        let size = Size(corpus::bytes(PageName::Small10));
        assert_eq!(job.work, Work::Page(LoadedPage::plain(PageName::Small10, size)));
        assert_eq!((job.load.extent, job.load.recording), (Extent::Requests(1), Recording::Loads));
    }

    #[test]
    fn a_page_may_have_a_server_delay_and_early_hints() {
        let hinted = "protocol = 'h2'\nclient = 'firefox'\ndelay = '100 ms'\nearly_hints = true\n";
        let job = job(&format!("{hinted}page = 'small-10'")).unwrap();
        let page = job.page().unwrap();
        assert_eq!((page.early_hints, page.delay), (Some(true), Span::from_millis(100)));
        let message = super::page(&toml::from_str(hinted).unwrap(), Protocol::H2).unwrap_err().to_string();
        assert!(message.contains("`early_hints` is set, which only a `page` has"), "{message}");
    }

    #[test]
    fn a_page_is_spread_over_hosts_with_one_server_each() {
        let page = "page = 'today'\nprotocol = 'h3'\nclient = 'firefox'\n";
        let spread = job(&format!("{page}hosts = 3")).unwrap();
        assert_eq!(spread.page().unwrap().hosts, ["wirelab.test", "cdn-2.wirelab.test", "cdn-3.wirelab.test"]);
        assert_eq!(spread.server_count(), 3);
        assert_eq!(job(&format!("{page}hosts = 1")).unwrap(), job(page).unwrap());
        for (more, words) in [
            ("hosts = 21", "`hosts` is 21, but must be from 1 to 20"),
            ("hosts = 0", "`hosts` is 0, but must be from 1 to 20"),
            ("hosts = 4\nnetwork = 'overlay'\nplacement = 'lan'", "set it to `direct`"),
            ("hosts = 4\nearly_hints = true", "remove one of them"),
            ("hosts = 4\nservers = '4 far'", "`servers` needs nodes and pods"),
        ] {
            let message = job(&format!("{page}{more}")).unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        }
        let other = |page: &str| {
            job(&format!("page = '{page}'\nprotocol = 'h3'\nclient = 'firefox'\nhosts = 3")).unwrap_err().to_string()
        };
        assert!(other("large-2").contains("files for 2 hosts only"), "{}", other("large-2"));
        assert!(other("./site").contains("a folder, which has one host"), "{}", other("./site"));
        assert!(other("./saved.har").contains("hosts of its own; remove `hosts`"), "{}", other("./saved.har"));
        let archive = "page = './saved.har'\nprotocol = 'h2'\nclient = 'firefox'\n";
        let read_later = job(archive).unwrap();
        let read_later = read_later.page().unwrap();
        assert_eq!((read_later.hosts.len(), read_later.size), (0, Size(0)));
        let hinted = job(&format!("{archive}early_hints = true")).unwrap_err().to_string();
        assert!(hinted.contains("`./saved.har` is an archive"), "{hinted}");
        let without = job("hosts = 2\nprotocol = 'h3'").unwrap_err().to_string();
        assert!(without.contains("`hosts` is set, which only a `page` has"), "{without}");
    }

    #[test]
    fn settings_that_browsers_decide_are_refused_by_name() {
        let page = "page = 'small-10'\nprotocol = 'h2'\n";
        for (more, words) in [
            ("", "needs a browser: set `client`"),
            ("client = 'firefox'\nworkers = 4", "`workers` is set beside `page` (small-10)"),
            ("client = 'firefox'\nconnections = 'per-request'", "`connections` is set"),
            ("client = 'firefox'\npayload = '1 KiB'", "`payload` is set"),
            ("client = 'firefox'\nresumption = 'resume'", "`resumption` is set"),
        ] {
            let message = job(&format!("{page}{more}")).unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        }
        let folder = "page = './site'\nprotocol = 'h2'\nclient = 'firefox'\nearly_hints = true";
        let message = job(folder).unwrap_err().to_string();
        assert!(message.contains("`./site` is a folder"), "{message}");
        let message = job("page = 'small-10'\nprotocol = 'h2c'\nclient = 'firefox'").unwrap_err().to_string();
        assert!(message.contains("not by h2c"), "{message}");
    }
}
