//! A table that fits a terminal: cells are wrapped, and the last column gets the remaining width.

use console::measure_text_width;

/// Space between two columns.
const GAP: &str = "  ";
/// Minimum width of the last column: a long line is better than one word per line.
const NARROWEST: usize = 24;
/// Maximum width of the other columns.
const WIDEST: usize = 40;

/// Rows under a heading.
#[derive(Clone, Debug)]
pub struct Table<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    /// A table with these columns.
    pub fn new(heading: [&str; N]) -> Self {
        Self { rows: vec![heading.map(str::to_owned)] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// The lines, at most `width` characters wide if possible.
    pub fn render(&self, width: usize) -> String {
        let widths = self.widths(width);
        self.rows.iter().map(|row| lines_of(row, &widths)).collect()
    }

    fn widths(&self, width: usize) -> [usize; N] {
        let mut widths = [0; N];
        for (column, room) in widths.iter_mut().enumerate() {
            let widest = self.rows.iter().map(|row| measure_text_width(&row[column])).max();
            *room = widest.unwrap_or(0).min(WIDEST);
        }
        if let Some((last, others)) = widths.split_last_mut() {
            let before: usize = others.iter().map(|width| width + GAP.len()).sum();
            *last = width.saturating_sub(before).max(NARROWEST);
        }
        widths
    }
}

fn lines_of<const N: usize>(row: &[String; N], widths: &[usize; N]) -> String {
    let cells: Vec<Vec<String>> = row.iter().zip(widths).map(|(cell, width)| wrap(cell, *width)).collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    let mut out = String::new();
    for number in 0..height {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(widths) {
            let text = cell.get(number).map_or("", String::as_str);
            line += text;
            line += &" ".repeat(width.saturating_sub(measure_text_width(text)));
            line += GAP;
        }
        out += line.trim_end();
        out += "\n";
    }
    out
}

/// Breaks a text between words. A word wider than the space is not broken: it is a path or an address to copy.
fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if measure_text_width(line) + 1 + measure_text_width(word) <= room => {
                *line += " ";
                *line += word;
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
