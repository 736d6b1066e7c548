//! The observer `film` needs a page to film.

use wirelab_model::plan::{Cell, Plan, Work};
use wirelab_observe::film::ABOUT as FILM;

use crate::error::RunError;

/// Rejects the observer `film` for cells without a page: such a trial would have no values.
///
/// # Errors
/// If a filmed cell has no page; the message names the first one.
pub fn only_pages_are_filmed(plan: &Plan, observers: &[String]) -> Result<(), RunError> {
    let is_filmed = |cell: &&Cell| observers.iter().chain(&cell.job.more_observers).any(|name| name == FILM.name);
    match plan.cells.iter().filter(is_filmed).find(|cell| !matches!(cell.job.work, Work::Page(_))) {
        None => Ok(()),
        Some(cell) => Err(RunError::Refused {
            why: format!(
                "the observer `{}` films pages in browsers, but the cell `{}` loads none; remove it, or set `page`",
                FILM.name,
                cell.label()
            ),
        }),
    }
}

#[cfg(test)]
mod tests {
    use wirelab_model::page::PageName;
    use wirelab_model::plan::LoadedPage;
    use wirelab_model::units::Size;

    use super::*;
    use crate::fixture::{cell, plan};

    #[test]
    fn only_cells_with_a_page_can_be_filmed() {
        let (mut page, single) = (cell(), cell());
        page.job.work = Work::Page(LoadedPage::plain(PageName::Small10, Size(0)));
        let film = ["cpu".to_owned(), "film".to_owned()];
        assert!(only_pages_are_filmed(&plan(vec![page.clone()]), &film).is_ok());
        assert!(only_pages_are_filmed(&plan(vec![single.clone()]), &film[..1]).is_ok());
        let refused =
            |plan: &Plan, observers: &[String]| only_pages_are_filmed(plan, observers).unwrap_err().to_string();
        assert!(refused(&plan(vec![page, single.clone()]), &film).contains("loads none"));
        let mut more = single;
        more.job.more_observers = vec!["film".to_owned()];
        assert!(refused(&plan(vec![more]), &[]).contains("set `page`"));
    }
}
