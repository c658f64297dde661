def put(page, found): pass
