//! `wirelab page`: the same pages in real browsers over HTTP/1.1, HTTP/2 and HTTP/3, interleaved and politely.

mod filmstrip;
mod loads;
mod logs;
mod result;
mod strip;
mod text;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use indexmap::{IndexMap, IndexSet};
use wirelab_browser::har::{Titled, har};
use wirelab_browser::{Browser, Load, Origin, Page, Setup, Trouble, Viewport};
use wirelab_lab::Guard;
use wirelab_model::outcome::Outcome;
use wirelab_model::protocol::Protocol;
use wirelab_plan::polite;
use wirelab_run::Pace;

use self::loads::Cell;
use crate::args::{BrowserArg, PageArgs};
use crate::failure::{Failure, Result};
use crate::interrupt::stop_flag;
use crate::output::{print, print_json};
use crate::place::program;
use crate::target::Target;
use crate::visits::{self, Aim, FLAG, What};

/// The protocols over which browsers load pages.
const PROTOCOLS: [Protocol; 3] = [Protocol::H1, Protocol::H2, Protocol::H3];

/// The installed browsers that the command uses, and the missing ones.
struct Browsers {
    installed: IndexMap<Browser, PathBuf>,
    /// Missing browsers that the command line does not name, with the remedy.
    missing: IndexMap<&'static str, String>,
}

/// Loads pages.
pub fn page(args: &PageArgs) -> Result {
    let targets = targets(args)?;
    if let Some(authority) = &args.ca {
        File::open(authority)
            .map_err(|error| Failure::input(format!("cannot read --ca {}: {error}", authority.display())))?;
    }
    let browsers = browsers(args)?;
    logs::check(args, &browsers)?;
    check_save(args, &browsers)?;
    let mut cells = cells(args, &targets, &browsers);
    let planned = if args.i_may_load_these_hosts { BTreeMap::new() } else { planned(args, &targets, &cells) };
    be_polite(&planned)?;
    visits::admit(&planned)?;
    let mut archive = args.har.as_deref().map(create).transpose()?;
    let mut saved = args.save.as_deref().map(create).transpose()?;
    logs::create(args)?;
    let strips = args.filmstrip.as_deref().map(filmstrip::create).transpose()?;
    let stop = stop_flag()?;
    let guard = Arc::new(Guard::start(&program()?).map_err(Failure::failed)?);
    let interval = if planned.is_empty() { Duration::ZERO } else { polite::LOAD_INTERVAL };
    // One browser for each protocol, because a protocol is forced when a browser starts.
    let (mut running, mut pace) = (loads::Running::new(), Pace::new(interval));
    let versions = loads::measure(args, &mut cells, &mut running, &mut pace, &guard, &stop);
    if let Some(folder) = &strips {
        loads::films(&mut cells, &mut running, &mut pace, &guard, &stop);
        filmstrip::write(folder, &cells)?;
    }
    if let (Some((path, file)), Some(cell)) = (&mut saved, to_save(&cells)) {
        match loads::save(cell, &mut running, &mut pace, &guard, &stop) {
            Ok(load) => save(path, file, cell, &load)?,
            Err(Trouble::Stopped) => {}
            Err(Trouble::Failed { reason, .. }) => return Err(Failure::failed(format!("nothing is saved: {reason}"))),
        }
    }
    let incomplete = logs::complete(running);
    if let Some((path, file)) = &mut archive {
        write_archive(path, file, &cells)?;
    }
    if args.show.json {
        print_json(&result::json(&cells, &versions, &browsers.missing, &logs::names(args)))?;
    } else {
        print(&text::text(&cells, &versions, &browsers.missing, &logs::names(args)))?;
    }
    if let Some(why) = incomplete {
        return Err(Failure::failed(format!("what a browser wrote of its connections may be incomplete: {why}")));
    }
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::interrupted("interrupted; the result is what was loaded until then"));
    }
    if cells.iter().all(|cell| cell.samples() == 0) {
        return Err(Failure::failed("no load gave a sample; the result names the reasons"));
    }
    Ok(())
}

fn targets(args: &PageArgs) -> Result<Vec<Target>> {
    if let Some(wrong) = args.protocols.iter().find(|protocol| !PROTOCOLS.contains(protocol)) {
        return Err(Failure::input(format!("browsers load pages by h1, h2 or h3 over TLS, not by {wrong}")));
    }
    let urls: IndexSet<&String> = args.urls.iter().collect();
    let find = |url: &String| {
        let target = Target::find(url, None)?;
        args.protocols.iter().try_for_each(|protocol| target.admit(*protocol)).map(|()| target)
    };
    urls.into_iter().map(find).collect()
}

fn browsers(args: &PageArgs) -> Result<Browsers> {
    let mut found = Browsers { installed: IndexMap::new(), missing: IndexMap::new() };
    let wanted: Vec<Browser> = match &args.browsers[..] {
        [] => Browser::ALL.to_vec(),
        named => named.iter().map(|browser| (*browser).into()).collect(),
    };
    for browser in wanted {
        match browser.find() {
            Ok(program) => {
                found.installed.insert(browser, program);
            }
            Err(missing) if args.browsers.is_empty() => {
                found.missing.insert(browser.token(), missing.to_string());
            }
            Err(missing) => return Err(Failure::failed(missing)),
        }
    }
    if found.installed.is_empty() {
        let reasons: Vec<_> = found.missing.into_values().collect();
        return Err(Failure::failed(format!("no browser is installed.\n  {}", reasons.join("\n  "))));
    }
    Ok(found)
}

impl From<BrowserArg> for Browser {
    fn from(browser: BrowserArg) -> Self {
        match browser {
            BrowserArg::Chromium => Self::Chromium,
            BrowserArg::Firefox => Self::Firefox,
        }
    }
}

/// Every combination of page, browser and protocol.
fn cells(args: &PageArgs, targets: &[Target], browsers: &Browsers) -> Vec<Cell> {
    let origins: Vec<_> = targets.iter().map(origin).collect();
    let protocols: IndexSet<Protocol> = args.protocols.iter().copied().collect();
    let mut cells = Vec::new();
    for target in targets {
        for (browser, program) in &browsers.installed {
            for protocol in &protocols {
                let page = Page {
                    url: target.url.clone(),
                    requests: args.expect,
                    viewport: Viewport::DEFAULT,
                    timeout: args.timeout.to_std(),
                    film: false,
                    bodies: false,
                };
                let setup = Setup {
                    browser: *browser,
                    program: program.clone(),
                    protocol: *protocol,
                    origins: origins.clone(),
                    authority: args.ca.clone(),
                    logs: logs::of(args).of(*browser),
                };
                cells.push(Cell { page, setup, loads: Vec::new(), film: None });
            }
        }
    }
    cells
}

fn origin(target: &Target) -> Origin {
    let host = target.url.host_str().unwrap_or(&target.host).to_owned();
    Origin { host, port: target.port, address: target.address }
}

/// The page loads from each host outside this machine and private networks.
fn planned(args: &PageArgs, targets: &[Target], cells: &[Cell]) -> BTreeMap<Aim, u64> {
    let mut planned = BTreeMap::new();
    for target in targets.iter().filter(|target| !target.is_near()) {
        let of_host = cells.iter().filter(|cell| cell.page.url.host_str() == target.url.host_str()).count();
        let of_each = u64::from(args.loads) + u64::from(args.filmstrip.is_some());
        let saved = u64::from(args.save.is_some());
        let loads = u64::try_from(of_host).unwrap_or(u64::MAX).saturating_mul(of_each).saturating_add(saved);
        planned.insert(Aim { host: target.host.clone(), what: What::Pages }, loads);
    }
    planned
}

/// Refuses more loads than the limit for hosts of other owners.
fn be_polite(planned: &BTreeMap<Aim, u64>) -> Result {
    let most = polite::LOADS;
    match planned.iter().find(|(_, loads)| **loads > most.into()) {
        None => Ok(()),
        Some((Aim { host, .. }, loads)) => Err(Failure::input(format!(
            "{host} would be loaded {loads} times over all browsers and versions; a host that is not yours gets at most {most} \
             loads. Lower --loads, or say {FLAG}"
        ))),
    }
}

/// Creates a file before the first load, because an unwritable file found later would waste the loads.
fn create(path: &Path) -> Result<(PathBuf, File)> {
    let file =
        File::create(path).map_err(|error| Failure::input(format!("cannot create {}: {error}", path.display())))?;
    Ok((path.to_owned(), file))
}

fn write_archive(path: &Path, file: &mut File, cells: &[Cell]) -> Result {
    let loads =
        || cells.iter().flat_map(|cell| cell.loads.iter().enumerate().map(move |(number, load)| (cell, number, load)));
    let title = |(cell, number, _): &(&Cell, usize, _)| {
        let Setup { browser, protocol, .. } = &cell.setup;
        format!("{browser} {protocol} load {}: {}", number + 1, cell.page.url)
    };
    let titles: Vec<_> = loads().map(|load| title(&load)).collect();
    let titled: Vec<_> = loads().zip(&titles).map(|((.., load), title)| Titled { title, load }).collect();
    write_har(path, file, &titled)
}

/// Refuses `--save` unless exactly one page is given and Chromium takes part.
fn check_save(args: &PageArgs, browsers: &Browsers) -> Result {
    if args.save.is_none() {
        return Ok(());
    }
    if args.urls.len() > 1 {
        return Err(Failure::input("--save saves one page; give one URL"));
    }
    if browsers.installed.contains_key(&Browser::Chromium) {
        return Ok(());
    }
    Err(Failure::input("--save is done by Chromium only, which does not take part. Add it to --browsers"))
}

/// The cell whose page is saved: in Chromium, over HTTP/2 if possible, because most hosts of most pages support it.
fn to_save(cells: &[Cell]) -> Option<&Cell> {
    let in_chromium = || cells.iter().filter(|cell| cell.setup.browser == Browser::Chromium);
    in_chromium().find(|cell| cell.setup.protocol == Protocol::H2).or_else(|| in_chromium().next())
}

/// Writes a load with all bodies. Its versions of HTTP do not matter.
fn save(path: &Path, file: &mut File, cell: &Cell, load: &Load) -> Result {
    if load.timeline.is_none() {
        let reason = match &load.outcome {
            Outcome::Failed { reason, .. } | Outcome::Unsupported { reason } => reason.to_string(),
            Outcome::Ok => "the page does not answer".to_owned(),
        };
        return Err(Failure::failed(format!("nothing is saved: {reason}")));
    }
    write_har(path, file, &[Titled { title: cell.page.url.as_str(), load }])
}

fn write_har(path: &Path, file: &mut File, titled: &[Titled<'_>]) -> Result {
    let archive = har(env!("CARGO_PKG_VERSION"), titled);
    let written = serde_json::to_writer_pretty(&mut *file, &archive).map_err(std::io::Error::from);
    written
        .and_then(|()| file.write_all(b"\n"))
        .map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))
}
