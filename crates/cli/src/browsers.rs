//! The browsers as endpoints: clients of pages, which wirelab starts by executing itself.

use std::path::Path;

use wirelab_browser::Browser;
use wirelab_lab::endpoints::{Found, builtin};
use wirelab_model::endpoint::Endpoint;

/// Every browser, installed or not. Browsers are not in the list of endpoints, because they load only pages: the
/// contract suite and the level `installed` do not apply to them.
pub fn endpoints(program: &Path) -> Vec<Found> {
    let endpoint = |browser: Browser| {
        let mut endpoint = Endpoint { name: browser.token().to_owned(), ..builtin(program) };
        endpoint.command.extend(["--browser".to_owned(), browser.token().to_owned()]);
        Found { name: endpoint.name.clone(), folder: None, endpoint: Ok(endpoint), installation: None }
    };
    Browser::ALL.into_iter().map(endpoint).collect()
}

#[cfg(test)]
mod tests {
    use wirelab_lab::endpoints::BUILTIN;

    use super::*;

    #[test]
    fn browsers_are_started_as_wirelab_itself_under_names_of_their_own() {
        let all = endpoints(Path::new("/usr/bin/wirelab"));
        assert!(all.iter().all(|found| found.name != BUILTIN));
        let firefox = all.iter().find(|found| found.name == "firefox").unwrap().endpoint.clone().unwrap();
        assert_eq!(firefox.command, ["/usr/bin/wirelab", "endpoint", "--browser", "firefox"]);
    }
}
