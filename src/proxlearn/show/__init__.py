"""What a person looks at: lines and tables on the screen, reports as a page, the demo. Rests on
`measure` and what that rests on."""
