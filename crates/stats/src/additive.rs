//! The additive model of a two-way table: a value is an effect of its row plus an effect of its column (Scheffé 1959,
//! "The analysis of variance", chapter 4), by least squares over the fields with a value.
//!
//! The result is the rest of each field. Sprague and Tatum (1942), "General vs. specific combining ability in single
//! crosses of corn", called it the specific combining ability of a pair. A field that takes part in its own prediction
//! hides a part of its own effect. Every field is therefore compared with the prediction from all *other* fields: the
//! deleted residual, which is the residual divided by one minus its leverage (Belsley, Kuh and Welsch 1980, "Regression
//! diagnostics", section 2.1).

/// The model for the fields of a table with a value.
pub struct Additive {
    /// Each field as row and column, in one sequence of numbers, and whether it takes part in the predictions.
    fields: Vec<((usize, usize), bool)>,
    /// The inverse of the normal equations.
    inverse: Vec<Vec<f64>>,
    /// One minus the leverage of each field; 0 if the others do not predict it.
    free: Vec<f64>,
}

/// Below this limit, only rounding remains: no other field connects the row of the field to its column.
const NOTHING: f64 = 1e-9;

impl Additive {
    /// The model for fields by row and column. `takes` has a flag per field: whether it takes part in predictions.
    pub fn of(fields: &[(usize, usize)], takes: &[bool]) -> Self {
        let rows = fields.iter().map(|(row, _)| row + 1).max().unwrap_or(0);
        let columns = fields.iter().map(|(_, column)| column + 1).max().unwrap_or(0);
        // With negated column effects, the normal equations are the Laplacian of the graph with the fields as edges.
        let fields: Vec<_> =
            fields.iter().map(|(row, column)| (*row, rows + column)).zip(takes.iter().copied()).collect();
        let edges: Vec<_> = fields.iter().filter(|(_, takes)| *takes).map(|(edge, _)| *edge).collect();
        let mut equations = vec![vec![0.0; rows + columns]; rows + columns];
        for &(row, column) in &edges {
            equations[row][row] += 1.0;
            equations[column][column] += 1.0;
            equations[row][column] -= 1.0;
            equations[column][row] -= 1.0;
        }
        // Each connected part of the table determines its effects up to a constant. The sum of the effects is set to 0.
        let parts = parts(rows + columns, &edges);
        for (a, line) in equations.iter_mut().enumerate() {
            let together = line.iter_mut().zip(&parts).filter(|(_, part)| **part == parts[a]);
            together.for_each(|(value, _)| *value += 1.0);
        }
        let inverse = inverse(equations);
        let leverage = |(a, b): (usize, usize)| inverse[a][a] + inverse[b][b] - 2.0 * inverse[a][b];
        let free = |(edge, takes): &((usize, usize), bool)| match takes {
            true => Some(1.0 - leverage(*edge)).filter(|free| *free > NOTHING).unwrap_or(0.0),
            false => f64::from(u8::from(parts[edge.0] == parts[edge.1])),
        };
        let free = fields.iter().map(free).collect();
        Self { fields, inverse, free }
    }

    /// For each field, whether the others predict it.
    pub fn predicts(&self) -> impl Iterator<Item = bool> {
        self.free.iter().map(|free| *free > 0.0)
    }

    /// The difference between each value and its prediction from all others; NaN without a prediction.
    pub fn beyond(&self, values: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.inverse.len()];
        for (&((row, column), _), value) in self.fields.iter().zip(values).filter(|((_, takes), _)| *takes) {
            sums[row] += value;
            sums[column] -= value;
        }
        let effects: Vec<f64> =
            self.inverse.iter().map(|line| line.iter().zip(&sums).map(|(a, b)| a * b).sum()).collect();
        let residuals =
            self.fields.iter().zip(values).map(|(&((row, column), _), value)| value - (effects[row] - effects[column]));
        residuals.zip(&self.free).map(|(residual, free)| if *free > 0.0 { residual / free } else { f64::NAN }).collect()
    }
}

/// The part of the graph that each node belongs to.
fn parts(nodes: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut parts: Vec<usize> = (0..nodes).collect();
    for &(a, b) in edges {
        let (from, to) = (parts[a].max(parts[b]), parts[a].min(parts[b]));
        parts.iter_mut().filter(|part| **part == from).for_each(|part| *part = to);
    }
    parts
}

/// The inverse of a symmetric positive definite matrix by Gauss-Jordan elimination, which needs no pivoting for such
/// matrices.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let n = matrix.len();
    let mut inverse: Vec<Vec<f64>> = (0..n).map(|a| (0..n).map(|b| f64::from(u8::from(a == b))).collect()).collect();
    for pivot in 0..n {
        let scale = matrix[pivot][pivot];
        for lines in [&mut matrix, &mut inverse] {
            lines[pivot].iter_mut().for_each(|value| *value /= scale);
        }
        for other in (0..n).filter(|other| *other != pivot) {
            let factor = matrix[other][pivot];
            for lines in [&mut matrix, &mut inverse] {
                let subtracted = lines[pivot].clone();
                lines[other].iter_mut().zip(subtracted).for_each(|(value, taken)| *value -= factor * taken);
            }
        }
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: usize, columns: usize) -> Vec<(usize, usize)> {
        (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))).collect()
    }

    fn all(fields: &[(usize, usize)]) -> Additive {
        Additive::of(fields, &vec![true; fields.len()])
    }

    fn sum_of_effects(fields: &[(usize, usize)]) -> Vec<f64> {
        fields.iter().map(|(row, column)| 3.0 * *row as f64 - 0.7 * (*column * *column) as f64 + 5.0).collect()
    }

    #[track_caller]
    fn check(got: &[f64], expected: &[f64]) {
        for (got, expected) in got.iter().zip(expected) {
            assert!((got - expected).abs() < 1e-9 || got.is_nan() && expected.is_nan(), "{got} is not {expected}");
        }
    }

    #[test]
    fn effects_of_rows_and_columns_leave_no_rest_even_with_missing_fields() {
        let mut fields = table(4, 5);
        check(&all(&fields).beyond(&sum_of_effects(&fields)), &[0.0; 20]);
        fields.retain(|(row, column)| (row + 2 * column) % 5 != 1);
        check(&all(&fields).beyond(&sum_of_effects(&fields)), &[0.0; 16]);
    }

    #[test]
    fn one_odd_field_is_found_in_full_size_and_distorts_others_by_less() {
        let fields = table(4, 5);
        let mut values = sum_of_effects(&fields);
        values[7] += 0.4;
        let beyond = all(&fields).beyond(&values);
        assert!((beyond[7] - 0.4).abs() < 1e-9);
        // Other fields of its row are off by 1/(columns - 1), of its column by 1/(rows - 1), the rest by the product.
        check(&[beyond[5], beyond[2], beyond[0]], &[-0.4 / 4.0, -0.4 / 3.0, 0.4 / 12.0]);
    }

    #[test]
    fn a_removed_field_distorts_no_other_and_is_still_predicted() {
        let fields = table(3, 3);
        let mut values = sum_of_effects(&fields);
        values[4] += 0.4;
        let mut takes = vec![true; 9];
        takes[4] = false;
        let beyond = Additive::of(&fields, &takes).beyond(&values);
        check(&beyond, &[0.0, 0.0, 0.0, 0.0, 0.4, 0.0, 0.0, 0.0, 0.0]);
        // In a table of two by two, three fields predict the fourth and nothing else.
        let model = Additive::of(&table(2, 2), &[false, true, true, true]);
        assert_eq!(model.predicts().collect::<Vec<_>>(), [true, false, false, false]);
        assert!(Additive::of(&[(0, 0)], &[false]).beyond(&[1.0])[0].is_nan());
    }

    /// The classical residuals of the complete table: value - mean of row - mean of column + mean of all.
    #[test]
    fn in_a_complete_table_it_is_the_interaction_divided_by_one_minus_the_leverage() {
        let values = [1.0, 4.0, 2.5, 3.0, 3.5, 7.0];
        let (rows, columns) = ([2.5, 4.5], [2.0, 3.75, 4.75]);
        let expected: Vec<f64> =
            (0..6).map(|n| (values[n] - rows[n / 3] - columns[n % 3] + 3.5) / (0.5 * 2.0 / 3.0)).collect();
        check(&all(&table(2, 3)).beyond(&values), &expected);
    }

    #[test]
    fn a_field_without_a_connection_to_its_row_and_column_has_no_prediction() {
        // One row; a corner with a single field; two separate tables.
        assert!(all(&table(1, 3)).beyond(&[1.0, 2.0, 3.0]).iter().all(|value| value.is_nan()));
        let hanging = [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)];
        let beyond = all(&hanging).beyond(&[1.0, 2.0, 3.0, 4.5, 9.0]);
        check(&beyond, &[0.5, -0.5, -0.5, 0.5, f64::NAN]);
        let apart = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 2), (2, 3), (3, 2), (3, 3)];
        check(
            &all(&apart).beyond(&[1.0, 1.0, 1.0, 2.0, 5.0, 5.0, 5.0, 5.0]),
            &[1.0, -1.0, -1.0, 1.0, 0.0, 0.0, 0.0, 0.0],
        );
        assert!(all(&[]).beyond(&[]).is_empty());
    }
}
