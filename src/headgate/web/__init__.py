"""Web: one page that shows how it is, and changes nothing.

    look       what store and lake say, read at one moment
    view       that look as one JSON object, for the page and for programs
    answers    from a request to an answer: pure, but for the look
    server     the socket: localhost, and one look at a time
    assets     the page itself: plain HTML, CSS and JavaScript, served as they are

The page asks for the JSON every two seconds and draws it. Names reach the browser as JSON only and
become text nodes there: no name is ever part of HTML.
"""
