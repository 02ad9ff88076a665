"""What comes in: tables, row weights, bins; arguments and threads.

reader.py      tables in files: what is opened, read, refused
text_table.py  files of delimited text, in any encoding
typed_table.py Parquet, Arrow, spreadsheets
cells.py       what cells of text mean
frame.py       a table as it was read from a file
sentences.py   parts of the sentences in messages
table.py       arrays and frames as columns, with their checks
columns.py     one column of an array or a frame
categories.py  labels, their codes, categorical columns
exact.py       masks, and whole numbers that a float64 would round
frame.py       a table that was read from a file
roles.py       what each column is: a feature, an identifier, a date, a constant
dates.py       the forms of dates, and numbers derived from them
leaks.py       columns that give the target away
weights.py     row weights, and weighted sums in fixed point
shards.py      the rows in parts: map, sum, maximum
binning.py     the table in bins of one byte
arguments.py   checks of single arguments
threads.py     how many threads may be used
"""
