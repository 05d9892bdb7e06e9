//! Computes the widths of a table's columns.

use super::GAP;
use crate::cli::line_width::display_width;

/// The minimum width of a column whose cells are wrapped, unless its longest cell is narrower. With less, a sentence
/// would become a tower of single words.
const WRAPPED_MIN: usize = 16;

/// Returns the width of each column for a table of at most `width` columns of the terminal; `None` if the words of the
/// table are too long for it. A table that fits without wrapping gets exactly the widths of its longest cells.
pub(super) fn fit(head: &[String], rows: &[Vec<String>], width: usize) -> Option<Vec<usize>> {
    let longest = |column: usize, measure: fn(&str) -> usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).chain(head.get(column));
        cells.map(|cell| measure(cell)).max().unwrap_or(0)
    };
    let natural: Vec<usize> = (0..head.len()).map(|column| longest(column, display_width)).collect();
    let available = width.checked_sub(GAP * head.len().saturating_sub(1))?;
    if natural.iter().sum::<usize>() <= available {
        return Some(natural);
    }
    let least =
        |(column, natural): (usize, &usize)| longest(column, longest_word).max(WRAPPED_MIN.min(*natural));
    let mut widths: Vec<usize> = natural.iter().enumerate().map(least).collect();
    let spare = available.checked_sub(widths.iter().sum())?;
    // The narrowest column that needs more gets the next character, so that the wrapped columns become equally wide.
    for _ in 0..spare {
        let wanting = widths.iter_mut().zip(&natural).filter(|(width, natural)| **width < **natural);
        let Some((narrowest, _)) = wanting.min_by_key(|(width, _)| **width) else { break };
        *narrowest += 1;
    }
    Some(widths)
}

fn longest_word(text: &str) -> usize {
    text.split(' ').map(display_width).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_share_the_width_that_words_leave() {
        let head = ["id".to_owned(), "what".to_owned(), "why".to_owned()];
        let sentence = "several words ".repeat(5);
        let rows = [vec!["0123456789-0123456789".to_owned(), sentence.clone(), sentence]];
        for (width, widths) in [
            (200, Some(vec![21, 70, 70])),
            (81, Some(vec![21, 28, 28])),
            (57, Some(vec![21, 16, 16])),
            (56, None),
            (0, None),
        ] {
            assert_eq!(fit(&head, &rows, width), widths, "{width}");
        }
    }
}
