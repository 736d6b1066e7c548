//! Reports in real browsers. `pages.rs` tests the reports of page loads.

use std::fs;
use std::path::Path;

use tempfile::{TempDir, tempdir};
use wirelab_browser::Browser;
use wirelab_testkit::browsers::is_here;
use wirelab_testkit::devtools::{Page, axe_core};
use wirelab_testkit::readable::{assert_readable, laid_out};
use wirelab_testkit::tab::{Key, Tab, in_each_browser};
use wirelab_testkit::{only_run, run};

/// Width and height of A4 without margins of a centimetre, in CSS pixels.
const PAPER: [u32; 2] = [718, 1047];

/// The report of a run in Chromium, complete.
fn opened() -> (TempDir, Page) {
    let folder = tempdir().unwrap();
    run(folder.path(), &["run", "quick", "--lab", "fake", "--quiet"]).with_status(0);
    let mut page = Page::open(&format!("file://{}", only_run(folder.path()).join("report.html").display()));
    page.until("document.readyState === 'complete' && document.querySelector('.headline') !== null");
    (folder, page)
}

#[test]
fn the_reports_of_a_run_and_of_a_table_are_readable_without_a_network() {
    let folder = tempdir().unwrap();
    run(folder.path(), &["run", "quick", "--lab", "fake", "--quiet"]).with_status(0);
    assert_readable(&only_run(folder.path()).join("report.html"));
    let said = run(folder.path(), &["analyze", "page-load", "--format", "html"]).with_status(0);
    let table = folder.path().join("table.html");
    fs::write(&table, said.out).unwrap();
    assert_readable(&table);
}

/// The lower ends of headline and overview in a window of this size, in CSS pixels.
fn ends_of_answer(page: &mut Page, size: [u32; 2]) -> (f64, f64) {
    page.look(size, false);
    let mut end = |part: &str| {
        page.eval(&format!("document.querySelector('{part}').getBoundingClientRect().bottom + scrollY"))
            .as_f64()
            .unwrap()
    };
    (end(".headline"), end("#overview .facet svg"))
}

#[test]
fn the_first_screen_of_kept_reports_has_the_answer_wide_and_narrow() {
    if !is_here(Browser::Chromium) {
        return;
    }
    let studies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    // With the number of screens before the first folded part.
    for (archive, screens) in
        [("quick/results/2026-11-24-two-cores", 3.0), ("cloud-quic/results/2026-11-25-two-cores", 6.0)]
    {
        let folder = tempdir().unwrap();
        let file = folder.path().join("report.html");
        let report = run(folder.path(), &["report", studies.join(archive).to_str().unwrap(), "--format", "html"]);
        let text = report.with_status(0).out;
        fs::write(&file, &text).unwrap();
        let mut page = Page::open(&format!("file://{}", file.display()));
        page.until("document.readyState === 'complete' && document.querySelector('.headline') !== null");
        for size in [[1280, 800], [400, 800]] {
            let (headline, overview) = ends_of_answer(&mut page, size);
            assert!(headline <= 800.0 && overview <= 800.0, "{archive}, {size:?}: {headline}, {overview}");
        }
        let found = laid_out(&text);
        assert!(found["first_fold"].as_f64() <= Some(screens), "{archive}: {found}");
    }
}

#[test]
fn a_mark_selects_its_cell_in_all_charts_and_each_drawing_can_be_enlarged() {
    let folder = tempdir().unwrap();
    run(folder.path(), &["run", "quick", "--lab", "fake", "--quiet"]).with_status(0);
    let address = format!("file://{}", only_run(folder.path()).join("report.html").display());
    for (browser, mut page) in in_each_browser(&address) {
        page.until("document.readyState === 'complete' && document.querySelector('.headline') !== null");
        page.eval("document.querySelectorAll('details').forEach((part) => { part.open = true; })");
        page.eval("document.querySelector('#boxes .tip').dispatchEvent(new MouseEvent('click', { bubbles: true }))");
        let charts = "new Set([...document.querySelectorAll('.tip.selected')].map((tip) => tip.closest('figure').id))";
        for chart in ["boxes", "blocks", "within-window", "percentiles"] {
            page.until(&format!("{charts}.has('{chart}')"));
        }
        page.until("document.querySelector('.selection').textContent.includes('Selected in all charts: ')");
        page.press(Key::Escape);
        page.until(&format!("{charts}.size === 0 && document.querySelector('.selection').hidden"));

        page.eval(
            "document.querySelector('#boxes .facet svg').scrollIntoView({ block: 'center', behavior: 'instant' })",
        );
        let place = "(() => {
            const { x, y, width, height } = document.querySelector('#boxes .facet svg').getBoundingClientRect();
            return [x + width / 4, y + height / 4, x + width * 3 / 4, y + height * 3 / 4].map(Math.round);
        })()";
        let place: Vec<i32> = serde_json::from_value(page.eval(place)).unwrap();
        page.drag([place[0], place[1]], [place[2], place[3]]);
        let share = "(() => {
            const { whole } = document.querySelector('#boxes .facet svg').dataset;
            const [now, before] = [document.querySelector('#boxes .facet svg').getAttribute('viewBox'), whole ?? ''];
            return now.split(' ')[2] / before.split(' ')[2];
        })()";
        page.until(&format!("Math.abs({share} - 0.5) < 0.05"));
        // The middle of the drawing has neither the labels below nor those to the left of it.
        let kept = "[...document.querySelectorAll('#boxes .facet svg .kept text')].filter((label) => {
            const [inner, outer] = [label, label.ownerSVGElement].map((part) => part.getBoundingClientRect());
            return inner.left > outer.left - 1 && inner.right < outer.right + 1 && inner.bottom < outer.bottom + 1;
        }).map((label) => label.classList[0])";
        page.until(&format!("['f-tick', 'f-ink'].every((kind) => {kept}.includes(kind))"));
        page.press(Key::Escape);
        page.until(&format!("{share} === 1 && {kept}.length === 0"));
        let heat_map = "document.querySelector('.heat table')";
        let drawn = page.eval(&format!("tableDrawing({heat_map}).svg"));
        let is_drawing =
            "new DOMParser().parseFromString(tableDrawing(document.querySelector('.heat table')).svg, 'image/svg+xml')
            .querySelectorAll('svg > text').length > 5";
        assert_eq!(page.eval(is_drawing), true, "{browser:?}: {drawn}");
        let table = page.eval(&format!("tableCsv({heat_map})"));
        let lines = table.as_str().unwrap().lines().filter(|line| line.contains(',')).count();
        assert_eq!(page.eval(&format!("{heat_map}.rows.length")), lines, "{browser:?}: {table}");
        page.eval("document.querySelector('#boxes .exports button').click()");
        let width = "document.querySelector('#boxes .facet').getBoundingClientRect().width";
        assert!(page.eval(width).as_f64().unwrap() > 600.0, "{browser:?}: the drawing has the whole width");
    }
}

#[test]
fn a_printed_report_has_every_chart_as_a_whole_on_a_page() {
    if !is_here(Browser::Chromium) {
        return;
    }
    let (_folder, mut page) = opened();
    let printed = page.print();
    assert!(printed.starts_with("JVBERi"), "it is no PDF: {}", &printed[..40]);
    page.lay_out_on_paper(PAPER);
    let [width, height] = PAPER;
    let broken = format!(
        "[...document.querySelectorAll('figure.chart .facets.all .facet')].filter((facet) => {{
            const box = facet.getBoundingClientRect();
            return box.width < 50 || box.height < 20 || box.right > {width} || box.height > {height};
        }}).map((facet) => facet.closest('figure').id)"
    );
    assert_eq!(page.eval(&broken), serde_json::json!([]));
    let shown = "document.querySelectorAll('figure.chart .facets.all .facet').length";
    assert!(page.eval(shown).as_u64().unwrap() > 20);
    let avoided = "[...document.querySelectorAll('figure.chart .facet')].every((facet) =>
        getComputedStyle(facet).breakInside === 'avoid')";
    assert_eq!(page.eval(avoided), true, "no drawing is cut at the end of a page");
}

#[test]
fn a_chart_is_printed_alone_for_a_paper() {
    if !is_here(Browser::Chromium) {
        return;
    }
    let (_folder, mut page) = opened();
    let whole = page.print().len();
    page.eval("document.getElementById('boxes').classList.add('alone')");
    let alone = page.print().len();
    assert!(alone < whole / 3, "{alone} of {whole} bytes");
    assert_eq!(page.eval("document.querySelectorAll('.alone').length"), 0, "the page is whole again");
    page.lay_out_on_paper(PAPER);
    page.eval("document.getElementById('boxes').classList.add('alone')");
    let shown = "[...document.querySelectorAll('main *')].filter((part) =>
        part.getClientRects().length > 0 && !part.closest('figure.alone') && !part.querySelector('figure.alone')).length";
    assert_eq!(page.eval(shown), 0, "nothing else is on paper");
    assert_eq!(page.eval("document.querySelector('#boxes svg').getClientRects().length"), 1);
}

#[test]
fn a_report_violates_no_rule_of_accessibility_wide_narrow_or_dark() {
    if !is_here(Browser::Chromium) {
        return;
    }
    let Some(axe) = axe_core() else { return };
    let (_folder, mut page) = opened();
    for (size, is_dark) in [([1280, 800], false), ([400, 800], false), ([1280, 800], true)] {
        page.look(size, is_dark);
        page.eval("for (const part of document.querySelectorAll('details')) part.open = true");
        assert_eq!(page.violations(&axe), [""; 0], "{size:?}, dark: {is_dark}");
    }
}
