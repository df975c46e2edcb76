"""Importer of Azure documentation pages, and of notes that are written like them: pure mappings of Markdown to facts.

`app.ingest.sources.documents` reads the files.

1. page -> blocks: `page` parses front matter and source, tables, passages and includes; `values` decodes bytes and
   parses numbers, dates and units.
2. blocks -> tables: `columns` recognises headers; `size_tables` and `series` read the kinds of tables,
   `document_tables` host specifications, too; it splits pages of several series and joins all tables of a document.
3. tables -> rows -> facts: `cells` has a reader for each column, and for what needs the rest of the row; `hardware`
   and `features` parse what is in a cell; `gpu_rows` reads what needs the whole page, too.
4. sentences -> facts: `sentences` has the patterns; `series` and `document` what holds for a page.
5. facts of all documents: `document` merges them, assigns sizes to series and reports contradictions.

A new synonym of a column goes to `columns`, a new column also to `cells.CELL_READERS`, a new feature flag to
`features.FLAGS`, a new sentence to the patterns of `sentences`. What is not understood is reported, never guessed.
"""
